"""What a caller gets in place of a result."""

from typing import Any


class Failure(Exception):
    """An error response: an HTTP status, a code for programs, a message for people and models."""

    def __init__(
        self, status: int, code: str, message: str, data: Any = None, headers: tuple[tuple[str, str], ...] = ()
    ):
        super().__init__(message)
        self.status, self.code, self.data, self.headers = status, code, data, headers

    def body(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": str(self)}
        if self.data is not None:
            error["data"] = self.data
        return {"error": error}
