class Failure(Exception):
    """An error response of the bridge. The codes and their statuses are the table of the contract (errors/code-stable)."""

    def __init__(self, status, code, message, data=None, headers=None):
        super().__init__(message)
        self.status, self.code, self.message, self.data, self.headers = status, code, message, data, headers or {}


def not_found(name):
    """One function for every name that the caller does not see, so that nobody learns why (access/no-oracle)."""
    return Failure(404, "tool_not_found", f'There is no tool named "{name}".')
