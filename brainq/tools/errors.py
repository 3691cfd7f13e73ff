"""What a tool raises to say in its own words how a call went wrong."""

from __future__ import annotations


class ToolError(Exception):
    """The call failed, and `text` is what the model reads of it, as it stands.

    Any other exception fails the call, too: the model then reads its type and its message in one line.

    text        at most 256,000 characters
    retryable   True: the model is told that it may try again
    """

    def __init__(self, text: str, *, retryable: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.retryable = retryable

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.text,), {"retryable": self.retryable}


class OutcomeUnknown(Exception):
    """A change may or may not have been made, and the tool cannot find out; `text` says what is known of it.

    The call ends `unknown`: the model reads the text, and that it must look before it repeats the change. A read has
    changed nothing: its call ends `failed`.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
