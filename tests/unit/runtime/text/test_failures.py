"""What people and models read of an exception."""

from __future__ import annotations

from typing import TypeVar

import pytest
from pydantic import BaseModel, ValidationError

from brainq.runtime.observe.tracebacks import user_traceback, where_raised
from brainq.runtime.text.failures import failure_name, failure_text, failure_words, only_leaf

Raised = TypeVar("Raised", bound=BaseException)


class Order(BaseModel):
    sku: int
    lines: list[int]


def misfit() -> ValidationError:
    try:
        Order.model_validate({"sku": "secret-1", "lines": ["secret-2"]})
    except ValidationError as error:
        return error
    raise AssertionError


def caused(error: Raised, cause: BaseException) -> Raised:
    error.__cause__ = cause
    return error


DISK = OSError("the disk is\nfull")
NO_INTEGER = "Input should be a valid integer, unable to parse string as an integer"
GROUP = ExceptionGroup("unhandled errors in a TaskGroup (1 sub-exception)", [DISK])


@pytest.mark.parametrize(
    ("error", "name", "text"),
    [
        (KeyError("a"), "KeyError", "KeyError: 'a'"),
        (ValueError(), "ValueError", "ValueError"),
        (caused(ValueError("a"), KeyError("b")), "ValueError", "ValueError: a"),
        (GROUP, "ExceptionGroup(OSError)", "OSError: the disk is full"),
        (ExceptionGroup("a", [ExceptionGroup("b", [GROUP])]), "ExceptionGroup(OSError)", "OSError: the disk is full"),
        (
            ExceptionGroup("a", [ValueError("1"), ExceptionGroup("b", [KeyError("2"), ValueError("3")])]),
            "ExceptionGroup(ValueError, KeyError)",
            "ValueError: 1; KeyError: '2'; ValueError: 3",
        ),
        (
            ExceptionGroup("a", [caused(ValueError("1"), KeyError("2"))]),
            "ExceptionGroup(ValueError)",
            "ValueError: 1 (caused by KeyError: '2')",
        ),
        (caused(ValueError("a"), GROUP), "ValueError", "ValueError: a (caused by OSError: the disk is full)"),
        (
            caused(ValueError("a"), caused(KeyError("b"), GROUP)),
            "ValueError",
            "ValueError: a (caused by KeyError: 'b' (caused by OSError: the disk is full))",
        ),
        (BaseExceptionGroup("a", [SystemExit(3)]), "BaseExceptionGroup(SystemExit)", "SystemExit: 3"),
        (
            ExceptionGroup("a", [ValueError(n) for n in range(7)]),
            "ExceptionGroup(ValueError)",
            "ValueError: 0; ValueError: 1; ValueError: 2; ValueError: 3; ValueError: 4; and 2 more",
        ),
        (
            misfit(),
            "ValidationError",
            f"ValidationError: sku: {NO_INTEGER}; lines[0]: {NO_INTEGER}",
        ),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_a_group_is_read_by_its_leaves_and_a_misfit_by_its_fields(error: BaseException, name: str, text: str) -> None:
    assert failure_name(error) == name
    assert failure_text(error) == text


def test_an_exception_that_leads_back_to_itself_ends() -> None:
    one, other = ValueError("a"), ValueError("b")
    one.__cause__, other.__cause__ = other, one
    assert failure_text(one) == "ValueError: a"
    assert failure_text(ExceptionGroup("g", [one])) == "ValueError: a (caused by ValueError: b)"
    leaf = ValueError("c")
    leaf.__cause__ = ExceptionGroup("its own", [leaf])
    assert failure_text(leaf) == "ValueError: c (caused by ValueError: c)"


def test_only_one_leaf_stands_for_its_group() -> None:
    assert only_leaf(GROUP) is DISK
    both = ExceptionGroup("a", [DISK, ValueError()])
    assert only_leaf(both) is both
    assert failure_words(GROUP) == "OSError: the disk is full"
    assert failure_words(DISK) == "the disk is full"


def test_the_place_and_the_traceback_of_a_group_are_those_of_its_leaves() -> None:
    with pytest.raises(ValueError, match="leaf") as leaf:
        raise ValueError("in the leaf")
    line = leaf.traceback[0].lineno + 1
    group = ExceptionGroup("a", [leaf.value])
    with pytest.raises(ExceptionGroup) as raised:
        raise group
    assert where_raised(raised.value).endswith(f"test_failures.py:{line}")
    assert "in the leaf" in user_traceback(raised.value)
