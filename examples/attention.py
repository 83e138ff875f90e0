"""Look at the attention of the model that comes with bertkit: what does "it" refer to?"""

from pathlib import Path

import bertkit

TEXT = "The animal didn't cross the street because it was too tired."
NUM_LAYERS = 6


def main() -> None:
    """Print the heads in which "it" attends most to "animal", and write the interactive page."""
    view = bertkit.view(TEXT)
    word, target = view.tokens.index("it"), view.tokens.index("animal")

    weights = {
        f"{layer}.{head}": float(matrix[word, target])
        for layer in range(1, NUM_LAYERS + 1)
        for head, matrix in enumerate(view.weights(layer), start=1)
    }
    for head in sorted(weights, key=weights.__getitem__, reverse=True)[:3]:
        print(f'head {head}: "it" attends to "animal" with {100 * weights[head]:.1f} %')

    Path("out").mkdir(exist_ok=True)
    view.write("out/attention.html")
    print("out/attention.html shows all heads; open it in a browser")


if __name__ == "__main__":
    main()
