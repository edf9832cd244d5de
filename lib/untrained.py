"""Methods without training, scored as runs of their own: what a trained encoder has to stand
beside."""

from pathlib import Path

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from lib import evaluate, experiment, files, identity, paths, profiles, recipes, runs
from lib.encoder import Encoder
from lib.profiles import Profile

METHODS = ("bag_of_words", "tfidf", "word_vectors", "sif")
OF_AN_ENCODER = ("word_vectors", "sif")


def run(
    notebook: str,
    method: str,
    profile_name: str = "small",
    data_dir: str | None = None,
    model: str | None = None,
) -> runs.Run:
    """Score a method without training as a run of its own, beside which the trained encoders have
    to stand.

    Args:
        method: `bag_of_words` (word counts), `tfidf` (scikit-learn's, idf from the profile's
            corpus), `word_vectors` (mean of an encoder's input embeddings) or `sif` (the same,
            weighted by a/(a + p(w)) and without the common component; p from the corpus).
        model: the encoder whose input embeddings these two take; None: the profile's.

    Raises:
        ValueError: unknown method, or a model for one that takes none.

    Source: SIF is Arora et al. 2017.
    """
    record, profile, sentences = _begun(notebook, method, profile_name, data_dir, model)
    with files.locked(record.folder):
        if record.metrics is None:
            record.start("cpu")
            record.finish(_scores(method, profile, sentences, data_dir, model))
    return record


def _scores(
    method: str, profile: Profile, sentences: list[str], data_dir: str | None, model: str | None
) -> dict[str, float]:
    if method in OF_AN_ENCODER:
        encoder = Encoder.load(model_of(profile, model))
        matrix = encoder.backbone.get_input_embeddings().weight.detach().numpy()
        counts = evaluate.token_counts(sentences, encoder.tokenizer) if method == "sif" else None
        encode = evaluate.word_vectors_encode(matrix, encoder.tokenizer, counts)
    else:
        vectorizer = (
            CountVectorizer() if method == "bag_of_words" else TfidfVectorizer().fit(sentences)
        )
        encode = evaluate.bag_of_words_encode(vectorizer)
    scores = experiment.test_scores(encode, profile, data_dir)
    scores[f"{profile.dev}_dev_spearman"] = evaluate.pairs_spearman(
        encode, identity.dev_pairs(profile, data_dir)
    )
    return {
        f"{name}_{which}": value for name, value in scores.items() for which in ("best", "last")
    }


def record(
    notebook: str,
    method: str,
    profile_name: str = "small",
    data_dir: str | None = None,
    model: str | None = None,
) -> runs.Run:
    """The run of a method without training, finished or not.

    Raises:
        ValueError: as `run`.
    """
    return _begun(notebook, method, profile_name, data_dir, model)[0]


def name_of(profile: Profile, model: str | None = None) -> str:
    """The name of the encoder whose input embeddings are scored; None: the profile's."""
    own = profile.model or recipes.recipe(f"{profile.recipes}_simcse").encoder.backbone
    return model or own


def model_of(profile: Profile, model: str | None = None) -> str:
    """The folder of the encoder whose input embeddings are scored, or its Hub id."""
    return identity.model_path(name_of(profile, model))


def vectors(profile: Profile, model: str | None = None) -> str | None:
    """The name by which a run says whose input embeddings it took; None where it is the profile's
    encoder.

    Example:
        >>> vectors(profiles.profile("small"), "data/mini-albert")
        'data/mini-albert'
        >>> vectors(profiles.profile("small"), "data/midi-bert")
    """
    if model is None:
        return None
    usual, other = (_same_for_all(name_of(profile, name)) for name in (None, model))
    return None if other == usual else other


def _same_for_all(name: str) -> str:
    """One name of a folder, however it was written; a package's or Hub's id as it is."""
    path = Path(name) if Path(name).exists() else paths.ROOT / name
    return identity.portable(str(path.resolve())) if path.exists() else name


def _begun(
    notebook: str, method: str, profile_name: str, data_dir: str | None, model: str | None
) -> tuple[runs.Run, Profile, list[str]]:
    if method not in METHODS:
        raise ValueError(
            f"unknown method without training {method!r}: choose one of {', '.join(METHODS)}"
        )
    if model and method not in OF_AN_ENCODER:
        raise ValueError(f"{method} takes no model: it needs no encoder")
    profile = experiment.with_text_at_hand(profiles.profile(profile_name), data_dir)
    sentences = experiment.sentences_of(profile, data_dir)
    folder = model_of(profile, model) if method in OF_AN_ENCODER else ""
    params, hashes = identity.of_method(profile, sentences, folder, data_dir)
    if named := vectors(profile, model):
        params["vectors"] = named
    return runs.Run(notebook, f"{profile_name}_{method}", 0, params, hashes), profile, sentences
