"""The one place through which matrix products go: linear layers, their gradients, and the engines that compute them."""

from bertie.nn.products.linear import Linear, linear, multiply

__all__ = ["Linear", "linear", "multiply"]
