"""Which operators made the inputs of operators: the flow of data between call paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bragg.model.table import Int32Array, Int64Array, Table


@dataclass(frozen=True, eq=False)
class InputTable(Table):
    """Tensors that an operator got from another one; those that no recorded operator made have no row.

    Attributes:
        node: The operator.
        input: Which of its arguments, from 0; the tensors of a list are one argument.
        producer: The operator that made the tensor, the outermost one that had returned it.
        output: Which of the tensors that this one returned.
        count: How often it was so.
    """

    node: Int32Array
    input: Int32Array
    producer: Int32Array
    output: Int32Array
    count: Int64Array

    def moved(self, target: Int32Array) -> InputTable:
        """The rows over other nodes, equal ones as one.

        Args:
            target: int32 [n_nodes before]: the new node; rows of nodes that have none (-1) are left out.
        """
        node, producer = target[self.node], target[self.producer]
        kept = self.replace(node=node, producer=producer).take((node >= 0) & (producer >= 0))
        keys = np.stack([kept.node, kept.input, kept.producer, kept.output], axis=1)
        unique, row = np.unique(keys, axis=0, return_inverse=True)
        count = np.zeros(len(unique), np.int64)
        np.add.at(count, row.reshape(-1), kept.count)
        return InputTable(unique[:, 0], unique[:, 1], unique[:, 2], unique[:, 3], count)
