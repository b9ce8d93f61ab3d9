from __future__ import annotations

import shlex

import pytest

from bragg.record.inside.redaction import REDACTED, without_secrets


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("train.py --api-key=abc123 --lr 1e-3", "train.py --api-key=* --lr 1e-3"),
        ("train.py --api_key abc123 --lr 1e-3", "train.py --api_key * --lr 1e-3"),
        (
            "train.py --hf-token=abc --password abc --db.password=abc",
            "train.py --hf-token=* --password * --db.password=*",
        ),
        ("train.py --api-key='a b c' x", "train.py --api-key=* x"),
        ("train.py -token abc", "train.py -token *"),
        (
            "train.py HF_TOKEN=abc model.secret=abc wandb.api_key=abc",
            "train.py HF_TOKEN=* model.secret=* wandb.api_key=*",
        ),
        ("train.py --AWS_SECRET_ACCESS_KEY=abc", "train.py --AWS_SECRET_ACCESS_KEY=*"),
        ("train.py --header 'Authorization: Bearer abcdefghij'", "train.py --header 'Authorization: *'"),
        ("train.py --header 'X: Bearer abcdefghij'", "train.py --header 'X: Bearer *'"),
        ("train.py postgres://user:abc@host:5432/db", "train.py 'postgres://user:*@host:5432/db'"),
        ("train.py hf_abcdefghijklmnopqrst sk-ant-abcdefghijkl", "train.py * *"),
        ('python -c \'api_key="abc"; run(token="abc", n=3)\'', "python -c 'api_key=*; run(token=*, n=3)'"),
        ('train.py --config \'{"password": "abc", "n": 3}\'', 'train.py --config \'{"password": *, "n": 3}\''),
        ("train.py --token --verbose", "train.py --token --verbose"),
    ],
)
def test_secrets_are_left_out(line: str, kept: str) -> None:
    assert without_secrets(shlex.split(line)) == [word.replace("*", REDACTED) for word in shlex.split(kept)]


@pytest.mark.parametrize(
    "line",
    [
        "train.py --max-tokens=4096 --tokenizer gpt2 --max_tokens 5 --num-key-value-heads=8 --key-dim 64",
        "train.py --key=loss --author me --authority=x --monkey=1 --secretary bob --lr=1e-3 https://host:8080/path",
        "python -m torch.distributed.run --nproc-per-node=8 train.py --sort-key name",
        "python -c 'x = 1; tokens=3; y: int = 2'",
        "train.py --passes 3 --keyboard=us sk-short",
    ],
)
def test_what_is_no_secret_stays(line: str) -> None:
    assert without_secrets(shlex.split(line)) == shlex.split(line)


def test_long_words_take_no_square_of_their_length() -> None:
    words = ["a" * 200_000, "-" * 200_000, "token" * 40_000, "a=" * 100_000, "://:" * 50_000]
    assert len(without_secrets(words)) == len(words)
