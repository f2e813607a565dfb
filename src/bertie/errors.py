"""Mistakes of users as one sentence: what, where, and what to do. Bugs raise what they raise."""


class UserError(Exception):
    """A mistake that the user can fix. The command line prints it in red and exits with 2."""

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None):
        self.what, self.where, self.hint = what, where, hint
        super().__init__(what)

    def __str__(self) -> str:
        sentence = f"{self.where}: {self.what}" if self.where else self.what
        whole = f"{sentence}; {self.hint}" if self.hint else sentence
        return whole.encode("utf-8", "backslashreplace").decode("utf-8")  # names of files need not be UTF-8


class InputError(UserError):
    """A text or data file cannot be read."""


class FolderError(UserError):
    """A model folder is missing, broken or does not fit."""


class SpecError(UserError):
    """A spec or an option has a value that cannot work."""


class TokenizerError(UserError):
    """A tokenizer is missing, unsupported or disagrees with the model."""


class CapabilityError(UserError):
    """The model has no part that could do this."""


class Interrupted(KeyboardInterrupt):
    """Work was stopped by a signal, after what was done had been saved. The message says how to continue."""

    def __init__(self, message: str, exit_code: int = 130):
        self.exit_code = exit_code
        super().__init__(message)
