"""BERT beside `transformers`: real weights and random small models, evaluation and training, folders both ways."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

import bertie
from bertie.batch import Batch, Pointers, Ragged
from bertie.models.folder.folder import open_folder
from bertie.models.folder.placement import place_tensors
from bertie.models.layouts import LAYOUTS
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert


def sts_sentences(shared: Path, count: int) -> list[str]:
    with (shared / "data/stsb/sts-train.tsv").open(encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return list(dict.fromkeys(sentence for row in rows for sentence in row[5:7]))[:count]


def close(ours: Tensor | np.ndarray, theirs: Tensor, limit: float) -> None:
    assert float((torch.as_tensor(ours) - theirs).detach().abs().max()) <= limit


def test_minilm_hidden_states_equal_transformers(minilm: Path, shared: Path) -> None:
    sentences = sts_sentences(shared, 500)
    assert len(sentences) == 500
    ours = bertie.load(minilm)
    theirs = transformers.AutoModel.from_pretrained(minilm).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    for start in range(0, 500, 50):
        inputs = tokenizer(sentences[start : start + 50], padding=True, return_tensors="pt")
        lengths = inputs["attention_mask"].sum(1)
        with torch.inference_mode():
            expected = theirs(**inputs).last_hidden_state
            rows = [ids[:length] for ids, length in zip(inputs["input_ids"], lengths.tolist(), strict=True)]
            states = ours.model.encoder(Batch({"tokens": Ragged.of(rows)})).states
        close(states.values, expected[inputs["attention_mask"].bool()], 1e-5)


def test_minilm_vectors_equal_sentence_transformers(minilm: Path, shared: Path) -> None:
    from sentence_transformers import SentenceTransformer

    sentences = sts_sentences(shared, 500)
    expected = SentenceTransformer(str(minilm), device="cpu").encode(sentences)
    vectors = bertie.load(minilm).encode(sentences)
    assert (vectors * expected).sum(1).min() >= 0.999999


def test_smiles_logits_equal_transformers(shared: Path) -> None:
    folder = shared / "weights/bert-smiles"
    theirs = transformers.BertForPreTraining.from_pretrained(folder).eval()
    ours = bertie.load(folder)
    assert ours.report.clean
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 591, (8, 60), generator=generator)
    segments = torch.randint(0, 2, (8, 60), generator=generator)
    with torch.inference_mode():
        expected = theirs(input_ids=ids, token_type_ids=segments)
        batch = Batch({"tokens": Ragged.of(list(ids)), "segments": Ragged.of(list(segments))})
        states = ours.model.encoder(batch).states
        close(ours.model.heads["masked-lm"](states.values), expected.prediction_logits.flatten(0, 1), 1e-4)
        pooled = ours.model.encoder.pool(states)
        close(ours.model.heads["next-sentence"](pooled), expected.seq_relationship_logits, 1e-4)


def random_config(seed: int) -> transformers.BertConfig:
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 3, 4])
    return transformers.BertConfig(
        vocab_size=draw.choice([50, 97, 211]),
        hidden_size=heads * draw.choice([4, 8, 16]),
        num_hidden_layers=draw.choice([1, 2, 3]),
        num_attention_heads=heads,
        intermediate_size=draw.choice([16, 40, 64]),
        hidden_act=draw.choice(["gelu", "gelu_new", "relu", "silu"]),
        max_position_embeddings=draw.choice([32, 40, 64]),
        type_vocab_size=draw.choice([1, 2, 3]),
        layer_norm_eps=draw.choice([1e-12, 1e-5]),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.2,
    )


def random_rows(config: transformers.BertConfig, seed: int) -> tuple[list[Tensor], list[Tensor]]:
    draw = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    lengths = [draw.randint(1, config.max_position_embeddings) for _ in range(draw.randint(1, 9))]
    if draw.random() < 0.5:
        lengths.sort(reverse=True)
    # Not id 0: transformers gives the padding row no gradient, and rows without padding never hold it.
    tokens = [torch.randint(1, config.vocab_size, (length,), generator=generator) for length in lengths]
    segments = [torch.randint(0, config.type_vocab_size, (length,), generator=generator) for length in lengths]
    return tokens, segments


def padded(rows: list[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("training", [False, True])
def test_random_configuration(seed: int, training: bool, tmp_path: Path) -> None:
    """Hidden states, both heads, the loss and every gradient."""
    config = random_config(seed)
    torch.manual_seed(seed)
    theirs = transformers.BertForPreTraining(config).train(training)
    theirs.save_pretrained(tmp_path)
    opened = open_folder(tmp_path)
    assert opened.report.clean
    ours = opened.model.train(training)

    rows, segments = random_rows(config, seed)
    mask = padded([torch.ones_like(row) for row in rows])
    masked = [torch.arange(len(row)) % 3 == 0 for row in rows]
    labels = padded([torch.where(chosen, row, -100) + 100 for row, chosen in zip(rows, masked, strict=True)]) - 100
    partner = torch.arange(len(rows)) % 2
    expected = theirs(
        input_ids=padded(rows),
        token_type_ids=padded(segments),
        attention_mask=mask,
        labels=labels,
        next_sentence_label=partner,
        output_hidden_states=True,
    )
    expected.loss.backward()

    flat_masked = torch.cat(masked).nonzero()[:, 0]
    counts = torch.tensor([int(chosen.sum()) for chosen in masked])
    tokens = Ragged.of(rows)
    batch = Batch(
        {
            "tokens": tokens,
            "segments": Ragged.of(segments),
            "masked": Pointers(flat_masked, counts),
            "masked_targets": Ragged(tokens.values[flat_masked], counts),
            "partner": partner,
        }
    )
    encoded = ours.encoder(batch, keep_layers=True)
    for own, other in zip(encoded.layers, expected.hidden_states, strict=True):
        close(own, other[mask.bool()], 1e-5)
    report = ours.loss(batch)
    report.loss().backward()
    close(report.loss(), expected.loss, 1e-5)
    close(ours.heads["masked-lm"](encoded.states.values), expected.prediction_logits[mask.bool()], 1e-4)

    gradients = dict(ours.named_parameters())
    compared = dict(theirs.named_parameters())
    for entry in place_tensors(ours, LAYOUTS["bert"], ours.recipe)[0]:
        found = gradients[entry.ours].grad
        wanted = entry.join([compared[name].grad for name in entry.theirs], gradients[entry.ours].shape)
        assert found is not None
        close(found, wanted, 1e-4)


def same_outputs(left: transformers.PreTrainedModel, right: transformers.PreTrainedModel) -> None:
    ids = torch.arange(24).view(2, 12) % left.config.vocab_size
    with torch.inference_mode():
        for own, other in zip(left(ids).to_tuple(), right(ids).to_tuple(), strict=True):
            assert torch.equal(own, other)


@pytest.mark.parametrize(
    "architecture", ["BertModel", "BertForMaskedLM", "BertForNextSentencePrediction", "BertForPreTraining"]
)
def test_saved_folder_opens_in_transformers(architecture: str, tmp_path: Path) -> None:
    config = random_config(3)
    theirs = getattr(transformers, architecture)(config).eval()
    theirs.save_pretrained(tmp_path / "theirs")
    loaded = bertie.load(tmp_path / "theirs")
    loaded.save(tmp_path / "ours")
    assert json.loads((tmp_path / "ours/config.json").read_text())["architectures"] == [architecture]

    again, told = getattr(transformers, architecture).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not told["missing_keys"] and not told["unexpected_keys"] and not told["mismatched_keys"]
    same_outputs(theirs, again.eval())
    back = bertie.load(tmp_path / "ours")
    assert back.recipe == loaded.recipe
    assert back.digest == loaded.digest


def test_recipe_from_scratch_opens_in_auto_model(tmp_path: Path) -> None:
    ours = Pretrained(Model.new(bert(SIZES["tiny"], vocab_size=300), seed=1))
    ours.save(tmp_path)
    theirs = transformers.AutoModel.from_pretrained(tmp_path).eval()
    ids = [1, 5, 9, 200]
    with torch.inference_mode():
        expected = theirs(torch.tensor([ids]), output_hidden_states=True, output_attentions=False).hidden_states
    close(ours.hidden_states(ids), torch.cat(expected), 1e-5)


def test_attention_equals_transformers(minilm: Path) -> None:
    theirs = transformers.AutoModel.from_pretrained(minilm, attn_implementation="eager").eval()
    ours = bertie.load(minilm)
    tokens = ours.tokenizer.encode("a pair of sentences", "tells segments apart")  # type: ignore[union-attr]
    with torch.inference_mode():
        expected = theirs(
            torch.from_numpy(tokens.ids)[None],
            token_type_ids=torch.from_numpy(tokens.segments)[None],
            output_attentions=True,
        ).attentions
    close(ours.attention("a pair of sentences", "tells segments apart"), torch.cat(expected), 1e-5)


def test_saved_minilm_opens_in_sentence_transformers(minilm: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    texts = ["one", "a longer sentence of several words", "", "word " * 400]
    ours = bertie.load(minilm)
    ours.save(tmp_path)
    theirs = SentenceTransformer(str(tmp_path), device="cpu")
    assert theirs.max_seq_length == 256
    expected = theirs.encode(texts)
    with pytest.warns(UserWarning, match="1 of 4 texts were too long"):
        vectors = ours.encode(texts)
    assert np.abs(vectors - expected).max() <= 1e-6
    theirs.save(str(tmp_path / "again"))
    with pytest.warns(UserWarning, match="1 of 4 texts were too long"):
        assert np.abs(bertie.load(tmp_path / "again").encode(texts) - expected).max() <= 1e-6


def test_next_sentence_and_fill_equal_pipelines(tmp_path: Path) -> None:
    """The verbs, on a random model with a tokenizer, beside the same computation in `transformers`."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat", "dog", "ran"]
    config = random_config(5)
    config.vocab_size, config.type_vocab_size = len(vocabulary), 2
    theirs = transformers.BertForPreTraining(config).eval()
    theirs.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    ours = bertie.load(tmp_path)
    tokenizer = transformers.BertTokenizer.from_pretrained(tmp_path)

    inputs = tokenizer("the cat sat", "the dog ran", return_tensors="pt")
    with torch.inference_mode():
        expected = theirs(**inputs).seq_relationship_logits.softmax(-1)[0, 0]
    assert ours.next_sentence("the cat sat", "the dog ran") == pytest.approx(float(expected), abs=1e-6)

    inputs = tokenizer("the [MASK] sat on the [MASK]", return_tensors="pt")
    with torch.inference_mode():
        probabilities = theirs(**inputs).prediction_logits[0].softmax(-1)
    guesses = ours.fill("the [MASK] sat on the [MASK]", top=3)
    assert [guess.gap for guess in guesses] == [0, 0, 0, 1, 1, 1]
    for guess, position in zip(guesses, [2, 2, 2, 6, 6, 6], strict=True):
        assert guess.probability == pytest.approx(float(probabilities[position, guess.id]), abs=1e-6)
        assert guess.token == vocabulary[guess.id]
    best = probabilities[[2, 6]].topk(3).indices.flatten().tolist()
    assert [guess.id for guess in guesses] == best
