"""What a transport raises when it fails."""


class Failure(Exception):
    """A failure with a code of docs/plugin-protocol.md and a sentence for people."""

    def __init__(self, code, reason, retryable=False):
        super().__init__(reason)
        self.code, self.reason, self.retryable = code, reason, retryable


class BadSetting(Exception):
    """A fault in one setting: its name, what is wrong, and what to write instead."""

    def __init__(self, name, problem, remedy):
        super().__init__(f"{name}: {problem}; {remedy}")
        self.name, self.problem, self.remedy = name, problem, remedy
