"""SQLite databases with the tables of `nsys export`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

PROCESS = 4242 << 24
THREAD = PROCESS | 4243
NAMES = {
    1: "matmul(float*)",
    2: "cudaLaunchKernel_v7000",
    3: "cudaMemcpyAsync_v3020",
    4: "step",
    5: "loader",
    6: "matmul",
}
TABLES = {
    "StringIds": "id INTEGER, value TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": """start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
        correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, registersPerThread INTEGER,
        gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER,
        staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, localMemoryPerThread INTEGER""",
    "CUPTI_ACTIVITY_KIND_MEMCPY": """start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
        correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER""",
    "CUPTI_ACTIVITY_KIND_MEMSET": """start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
        correlationId INTEGER, globalPid INTEGER, bytes INTEGER, value INTEGER""",
    "CUPTI_ACTIVITY_KIND_RUNTIME": """start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,
        nameId INTEGER""",
    "NVTX_EVENTS": """start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, globalTid INTEGER,
        domainId INTEGER""",
    "ThreadNames": "nameId INTEGER, globalTid INTEGER",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT",
    "TARGET_INFO_GPU": "name TEXT, smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER",
    "META_DATA_EXPORT": "name TEXT, value TEXT",
}
ROWS = {
    "StringIds": list(NAMES.items()),
    "CUPTI_ACTIVITY_KIND_KERNEL": [
        (500, 900, 0, 1, 7, 11, PROCESS, 1, 6, 64, 4, 2, 1, 128, 1, 1, 1024, 0, 0),
        (1000, 1300, 0, 1, 7, 12, PROCESS, 1, 6, 64, 4, 2, 1, 128, 1, 1, 1024, 0, 0),
    ],
    "CUPTI_ACTIVITY_KIND_MEMCPY": [(400, 450, 0, 1, 7, 10, PROCESS, 4096, 1)],
    "CUPTI_ACTIVITY_KIND_MEMSET": [(1400, 1410, 0, 1, 7, 99, PROCESS, 64, 0)],
    "CUPTI_ACTIVITY_KIND_RUNTIME": [(110, 120, THREAD, 10, 3), (130, 140, THREAD, 11, 2), (150, 160, THREAD, 12, 2)],
    "NVTX_EVENTS": [
        (100, 200, 59, "forward", None, THREAD, 0),
        (125, 145, 59, None, 4, THREAD, 3),
        (0, None, 75, "model", None, THREAD, 3),
        (90, 2000, 60, "epoch", None, THREAD, 0),
    ],
    "ThreadNames": [(5, THREAD)],
    "TARGET_INFO_SESSION_START_TIME": [(1_790_000_000_000_000_000, "")],
    "TARGET_INFO_GPU": [("NVIDIA H100", 132, 9, 0)],
    "META_DATA_EXPORT": [("EXPORT_SCHEMA_VERSION", "3.11.0")],
}


def write_database(path: Path, *left_out: str) -> Path:
    """A database with two launches, a copy, a set and NVTX ranges, without some of its tables."""
    with closing(sqlite3.connect(path)) as database:
        for table, columns in TABLES.items():
            if table not in left_out:
                database.execute(f"CREATE TABLE {table} ({columns})")
                marks = ", ".join("?" * len(ROWS[table][0]))
                database.executemany(f"INSERT INTO {table} VALUES ({marks})", ROWS[table])
        database.commit()
    return path
