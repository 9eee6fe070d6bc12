"""Secrets of the environment stay out of tool results."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from copilot_nb.secrets import redact


@pytest.fixture
def environment() -> Iterator[None]:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def test_values_of_secret_names_become_their_names(environment: None) -> None:
    """A model that prints the environment would send the keys to its provider and write them to the log."""
    os.environ.update(MY_API_KEY="sk-0123456789", Some_token="t0k3n-t0k3n")
    os.environ.update(PLAIN="plain words", PIN_KEY="1234")
    text = redact("sk-0123456789 t0k3n-t0k3n plain words 1234")
    assert text == "[value of MY_API_KEY] [value of Some_token] plain words 1234"


def test_a_secret_that_changes_is_followed(environment: None) -> None:
    """What is remembered between calls is which names are secret, not their values."""
    os.environ["MY_API_KEY"] = "first-value"
    assert redact("first-value") == "[value of MY_API_KEY]"
    os.environ["MY_API_KEY"] = "second-value"
    assert redact("first-value second-value") == "first-value [value of MY_API_KEY]"
    del os.environ["MY_API_KEY"]
    assert redact("second-value") == "second-value"
