"""Networks by name: what they take, what they refuse, and that the seed decides the weights."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
import torch
from torch import nn

from likewise.errors import InputError
from likewise.nn.networks import (
    MLP,
    NETWORKS,
    BatchNorm,
    LeNet,
    build_network,
    default_network,
    embed,
    last_linear,
)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("mlp", (5,)),
        ("mlp", (1, 8, 8)),
        ("linear", (5,)),
        ("linear", (3, 4, 4)),
        ("unit_linear", (5,)),
        ("unit_linear", (3, 4, 4)),
        ("lenet", (1, 28, 28)),
        ("lenet", (3, 16, 21)),
        ("resnet32", (3, 32, 32)),
        ("resnet32", (1, 9, 14)),
        ("resnet18", (4, 16, 16)),
        ("vgg8", (3, 32, 32)),
        ("vgg8", (1, 40, 33)),
    ],
)
def test_items_in_logits_out(name, shape, generator):
    network = build_network(name, shape, 7).eval()
    logits = network(torch.randn(3, *shape, generator=generator))
    assert logits.shape == (3, 7)
    assert torch.isfinite(logits).all()


def test_resnet32_is_the_papers_and_the_classics():
    """The well-known ResNet-32 has 0.46 million weights in 31 convolutions and one linear layer."""
    network = build_network("resnet32", (3, 32, 32), 10)
    main = [m for m in network.modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)]
    assert len(main) == 31
    assert 0.45e6 < sum(p.numel() for p in network.parameters()) < 0.47e6


@pytest.mark.parametrize("name", ["lenet", "resnet32", "resnet18", "vgg8", "resnet50"])
def test_image_networks_refuse_features(name):
    with pytest.raises(InputError, match=rf"network '{name}' is for images, .*\(5,\); use 'mlp'"):
        build_network(name, (5,), 3)


@pytest.mark.parametrize(("name", "smallest"), [("lenet", 16), ("vgg8", 8)])
def test_images_may_be_too_small(name, smallest):
    build_network(name, (1, smallest, smallest), 3).eval()(torch.zeros(1, 1, smallest, smallest))
    for height, width in ((smallest - 1, 40), (40, smallest - 1)):
        with pytest.raises(InputError, match=rf"at least {smallest} x .* are {height} x {width}"):
            build_network(name, (1, height, width), 3)


def test_an_unknown_name_lists_the_known():
    with pytest.raises(InputError, match=r"no network 'lenett'; choose from mlp, linear"):
        build_network("lenett", (1, 28, 28), 3)


def test_resnet50_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)  # as if it were not installed
    with pytest.raises(InputError, match=r"pip install 'likewise\[vision\]'"):
        build_network("resnet50", (3, 32, 32), 3)


def test_unit_rows_do_not_know_their_length(generator):
    network = build_network("unit_linear", (5,), 3)
    x = torch.randn(4, 5, generator=generator)
    torch.testing.assert_close(network(7 * x), network(x))
    assert torch.isfinite(network(0 * x)).all()
    assert network.linear is last_linear(network)


def weights_of(module: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@pytest.mark.parametrize(("name", "shape"), [("mlp", (5,)), ("resnet32", (1, 8, 8))])
def test_the_seed_alone_decides_the_weights(name, shape):
    torch.manual_seed(1)
    first = build_network(name, shape, 3, seed=4)
    torch.manual_seed(2)
    before = torch.random.get_rng_state()
    again = build_network(name, shape, 3, seed=4)
    assert torch.equal(torch.random.get_rng_state(), before)  # nobody else's randomness is touched
    other = build_network(name, shape, 3, seed=5)
    assert torch.equal(weights_of(first), weights_of(again))
    assert not torch.equal(weights_of(first), weights_of(other))


def test_a_module_of_the_users_is_copied():
    own = nn.Linear(5, 3)
    built = build_network(own, (5,), 3, seed=9)
    assert built is not own
    assert torch.equal(built.weight, own.weight)
    with torch.no_grad():
        built.weight.zero_()
    assert own.weight.any()


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((64,), "mlp"),
        ((1, 8, 8), "mlp"),
        ((3, 15, 40), "mlp"),
        ((1, 16, 16), "lenet"),
        ((1, 28, 32), "lenet"),
        ((1, 33, 28), "resnet32"),
        ((3, 32, 32), "resnet32"),
    ],
)
def test_the_network_for_a_shape(shape, name):
    assert default_network(shape) == name
    assert name in NETWORKS
    assert type(build_network(None, shape, 2)) is type(build_network(name, shape, 2))


# -- embeddings ----------------------------------------------------------------------------------


def test_the_embedding_goes_into_the_last_linear_layer(generator):
    network = MLP(4, 3, hidden=(6, 5)).eval()
    x = torch.randn(2, 4, generator=generator)
    embedding = embed(network, x)
    assert embedding.shape == (2, 5)
    torch.testing.assert_close(network[-1](embedding), network(x))
    assert last_linear(network) is network[-1]
    assert not network[-1]._forward_pre_hooks  # nothing is left behind


def test_the_embedding_of_images(generator):
    network = LeNet(1, 28, 28, 3).eval()
    assert embed(network, torch.randn(2, 1, 28, 28, generator=generator)).shape == (2, 500)


def test_without_a_linear_layer_the_output_is_the_embedding(generator):
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d(2))
    x = torch.randn(3, 1, 8, 8, generator=generator)
    torch.testing.assert_close(embed(network, x), network(x).flatten(1))
    assert last_linear(network) is None


def test_a_network_that_looks_twice_is_embedded_by_the_mean(generator):
    """As the mirrored predictions of images are."""

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (self.layer(x) + self.layer(x.flip(-1))) / 2

    x = torch.randn(2, 4, generator=generator)
    torch.testing.assert_close(embed(Twice(), x), (x + x.flip(-1)) / 2)


def test_batch_normalisation_without_the_count_is_pytorchs(generator):
    mine, theirs = BatchNorm(5), torch.nn.BatchNorm2d(5)
    x = torch.randn(6, 5, 4, 4, generator=generator)
    for training in (True, True, False):
        mine.train(training)
        theirs.train(training)
        assert torch.equal(mine(x), theirs(x))
    assert torch.equal(mine.running_var, theirs.running_var)
    assert mine.state_dict().keys() == theirs.state_dict().keys()


@pytest.mark.parametrize("name", ["lenet", "vgg8"])
def test_pooling_before_the_relu_is_the_same_as_after(name, generator):
    network = build_network(name, (3, 32, 32), 4).eval()
    swapped = list(network)
    for k, (first, second) in enumerate(pairwise(network)):
        if isinstance(first, torch.nn.MaxPool2d) and isinstance(second, torch.nn.ReLU):
            swapped[k : k + 2] = [torch.nn.ReLU(), first]
    x = torch.randn(4, 3, 32, 32, generator=generator)
    expected = torch.nn.Sequential(*swapped)(x)
    assert torch.equal(network(x), expected)
    assert [type(layer) for layer in swapped] != [type(layer) for layer in network]
