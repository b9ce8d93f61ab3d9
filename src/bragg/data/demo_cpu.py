"""Trains a small network to tell two spirals apart, in plain Python: something to profile on any machine."""
# ruff: noqa: D103, B905
# A program as users write it.

import math
import random

import bragg

N_POINTS, N_HIDDEN, N_EPOCHS, RATE = 128, 24, 150, 0.05

Row = list[float]
Matrix = list[Row]


@bragg.scope("load")
def load_spirals() -> tuple[Matrix, Row]:
    points, labels = [], []
    for index in range(N_POINTS):
        turn = 2 * math.pi * index / N_POINTS
        side = 1 if index % 2 else -1
        points.append([side * turn * math.cos(turn) / 3, side * turn * math.sin(turn) / 3, 1.0])
        labels.append(float(side))
    return points, labels


def matvec(matrix: Matrix, vector: Row) -> Row:
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def activate(values: Row) -> Row:
    return [math.tanh(value) for value in values]


@bragg.scope("forward")
def forward(first: Matrix, second: Row, point: Row) -> tuple[Row, float]:
    hidden = activate(matvec(first, point))
    return hidden, math.tanh(sum(a * b for a, b in zip(second, hidden)))


@bragg.scope("backward")
def backward(first: Matrix, second: Row, point: Row, hidden: Row, error: float) -> None:
    for index, (weight, value) in enumerate(zip(second, hidden)):
        slope = error * weight * (1 - value * value)
        second[index] -= RATE * error * value
        first[index] = [a - RATE * slope * b for a, b in zip(first[index], point)]


def train() -> float:
    chance = random.Random(0)
    first = [[chance.gauss(0, 1) for _ in range(3)] for _ in range(N_HIDDEN)]
    second = [chance.gauss(0, 1) for _ in range(N_HIDDEN)]
    points, labels = load_spirals()
    wrong = 0
    for _ in range(N_EPOCHS):
        wrong = 0
        with bragg.scope("epoch"):
            for point, label in zip(points, labels):
                hidden, guess = forward(first, second, point)
                wrong += guess * label < 0
                backward(first, second, point, hidden, (guess - label) * (1 - guess * guess))
    return 1 - wrong / N_POINTS


if __name__ == "__main__":
    print(f"trained: {train():.0%} of the points are on the right side")
