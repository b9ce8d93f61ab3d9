"""Trains a small network to tell two spirals apart, in plain Python: something to profile on any machine."""
# ruff: noqa: D103, B905
# A program as users write it.

import math
import random

import bragg

N_POINTS, N_FEATURES, N_HIDDEN, N_EPOCHS, RATE = 64, 48, 24, 80, 0.02

Row = list[float]
Matrix = list[Row]


@bragg.scope("load")
def load_spirals() -> tuple[Matrix, Row]:
    points, labels = [], []
    for index in range(N_POINTS):
        turn = 2 * math.pi * index / N_POINTS
        side = 1 if index % 2 else -1
        x, y = side * turn * math.cos(turn) / 3, side * turn * math.sin(turn) / 3
        points.append([math.sin(feature * x + (feature % 3) * y) for feature in range(N_FEATURES)])
        labels.append(float(side))
    return points, labels


def dot(one: Row, other: Row) -> float:
    total = 0.0
    for index, value in enumerate(one):
        total += value * other[index]
    return total


@bragg.scope("forward")
def forward(first: Matrix, second: Row, point: Row) -> tuple[Row, float]:
    hidden = [math.tanh(dot(row, point)) for row in first]
    return hidden, math.tanh(dot(second, hidden))


@bragg.scope("backward")
def backward(first: Matrix, second: Row, point: Row, hidden: Row, error: float) -> None:
    for index, (weight, value) in enumerate(zip(second, hidden)):
        slope = error * weight * (1 - value * value)
        second[index] -= RATE * error * value
        first[index] = [a - RATE * slope * b for a, b in zip(first[index], point)]


@bragg.scope("evaluate")
def share_right(first: Matrix, second: Row, points: Matrix, labels: Row) -> float:
    return sum(forward(first, second, point)[1] * label > 0 for point, label in zip(points, labels)) / len(points)


def train() -> float:
    chance = random.Random(0)
    first = [[chance.gauss(0, 0.3) for _ in range(N_FEATURES)] for _ in range(N_HIDDEN)]
    second = [chance.gauss(0, 0.3) for _ in range(N_HIDDEN)]
    points, labels = load_spirals()
    right = 0.0
    for _ in range(N_EPOCHS):
        with bragg.scope("epoch"):
            for point, label in zip(points, labels):
                hidden, guess = forward(first, second, point)
                backward(first, second, point, hidden, (guess - label) * (1 - guess * guess))
            right = share_right(first, second, points, labels)
    return right


if __name__ == "__main__":
    print(f"trained: {train():.0%} of the points are on the right side")
