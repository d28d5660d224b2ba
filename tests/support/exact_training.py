"""``fairseq-train`` that logs losses as they are: its meters round them to three digits."""

from fairseq_cli import train  # sets up the logging before anything of fairseq is imported

from fairseq.logging import meters  # isort: skip

if __name__ == "__main__":
    meters.safe_round = lambda number, digits: number
    train.cli_main()
