"""Command lines without their secrets: profiles are sent to others.

The rule (docs/guides/recording.md states it for users): the value of an option or assignment is left out when its name
ends in a word for a secret. So are the password of an address, what follows `Bearer`, and text that looks like a
token of a known service.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

REDACTED = "<redacted>"
# What a name ends in.
_SECRET = (
    r"(?:token|passw(?:or)?d|passphrase|secret|credentials?|auth|authorization|cookie|"
    r"(?:api|access|account|auth|client|private|secret|signing|encryption|ssh|subscription|license|wandb)[-_.]?key)"
)
_VALUE = r"""(?:"[^"]*"|'[^']*'|(?:Bearer |Basic )?[^\s,;&'"]+)"""
# None of them begins with a part of any length: that would take the square of the length of a word.
_NAME_END = re.compile(rf"{_SECRET}\Z", re.IGNORECASE)
_ASSIGNMENT = re.compile(rf"""({_SECRET}['"]?\s*[=:]\s*){_VALUE}""", re.IGNORECASE)
_BEARER = re.compile(r"(\b(?:Bearer|Basic)\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
_ADDRESS = re.compile(r"(://[^\s/:@]*:)[^\s/@]+(?=@)")
# Hugging Face, OpenAI and Anthropic, GitHub, GitLab, Slack, AWS.
_KNOWN = re.compile(r"\b(?:hf_|sk-|gh[pousr]_|github_pat_|glpat-|xox[abps]-|AKIA)[\w-]{12,}")


def without_secrets(words: Sequence[str]) -> list[str]:
    """The words of a command line, `<redacted>` in the place of what is secret.

    Args:
        words: As the program got them.
    """
    found, is_value = [], False
    for word in words:
        found.append(REDACTED if is_value and not word.startswith("-") else _without_secrets(word))
        is_value = _is_secret_option(word)
    return found


def _without_secrets(word: str) -> str:
    name, separator, _ = word.partition("=")
    if separator and _is_secret_option(name):
        return f"{name}={REDACTED}"
    for pattern in (_ASSIGNMENT, _BEARER, _ADDRESS):
        word = pattern.sub(rf"\1{REDACTED}", word)
    return _KNOWN.sub(REDACTED, word)


def _is_secret_option(name: str) -> bool:
    return name.startswith("-") and _NAME_END.search(name) is not None
