"""Process groups of JAX, as call paths name them: by the ids of the devices that compute something together.

devices 0-7                                        all GPUs of the process are in it
devices 0-6:2 on GPU 0,2 or devices 1-7:2 on GPU 1,3
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_MAX_LIST = 40  # characters; a longer list is its ends and a hash
_OR, _ON = " or ", " on GPU "


def group_text(members: Mapping[int, Sequence[int]]) -> str:
    """The name of the groups of an operation in one process.

    Args:
        members: Ids of the devices that each GPU of the process computes with, by the GPU's number in the process.
    """
    gpus: dict[str, list[int]] = {}
    for gpu, ids in members.items():
        gpus.setdefault(_devices(sorted(ids)), []).append(gpu)
    if len(gpus) == 1:
        return next(iter(gpus))
    return _OR.join(f"{name}{_ON}{','.join(map(str, sorted(own)))}" for name, own in gpus.items())


def group_on(text: str, gpu: int) -> str:
    """The name of the group that one GPU is in.

    Args:
        text: What `group_text` gave, or the name of another group, which is returned.
        gpu: Its number in the process.
    """
    for part in text.split(_OR):
        name, mark, gpus = part.partition(_ON)
        if mark and str(gpu) in gpus.split(","):
            return name
    return text


def _devices(ids: Sequence[int]) -> str:
    step = ids[1] - ids[0] if len(ids) > 1 else 1
    if len(ids) > 2 and list(ids) == list(range(ids[0], ids[-1] + 1, step)):
        return f"devices {ids[0]}-{ids[-1]}{f':{step}' if step > 1 else ''}"
    listed = ",".join(map(str, ids))
    if len(listed) > _MAX_LIST:
        from hashlib import blake2b  # 7 ms, for lists that are rare

        listed = f"{ids[0]}…{ids[-1]} #{blake2b(listed.encode(), digest_size=4).hexdigest()}"
    return f"devices {listed}"
