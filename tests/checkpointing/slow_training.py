"""The plain example on slow storage: a checkpoint takes 0.3 s to write, piece by piece."""

import logging
import pickle
import time

from steward_storage import Serializer
from train_plain import read_options, train

PIECES = 30


def dump(payload, file):
    data = pickle.dumps(payload)
    for number in range(PIECES):
        file.write(data[len(data) * number // PIECES : len(data) * (number + 1) // PIECES])
        file.flush()
        time.sleep(0.01)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    train(read_options(), Serializer(name="pickle", dump=dump, load=pickle.load))
