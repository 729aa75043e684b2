"""Will it fit? Weights, KV cache, activations and overhead of any model, each with its formula."""

from views.memory import page

page.show()
