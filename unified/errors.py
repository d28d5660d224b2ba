"""The one exception that means "your input cannot be used", as opposed to "the library has a bug"."""


class UnifiedError(ValueError):
    """A refusal in one line: what arrived, what was needed, what to do about it.

    Command lines print the message without a traceback and exit with a non-zero status.
    """
