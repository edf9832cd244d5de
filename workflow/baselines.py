"""Methods without training, scored as runs of their own: what a trained encoder has to stand beside."""

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from lib import evaluate, runs
from lib.encoder import Encoder
from lib.profiles import Profile, profile
from lib.recipes import recipe
from workflow import experiment

METHODS = ("bag_of_words", "tfidf", "word_vectors", "sif")


def run(notebook: str, method: str, profile_name: str = "small", data_dir: str | None = None) -> runs.Run:
    """Score a method without training as a run of its own, beside which the trained encoders have to stand.

    Args:
        method: `bag_of_words` (word counts), `tfidf` (scikit-learn's, idf from the profile's corpus),
            `word_vectors` (mean of the profile's encoder's input embeddings) or `sif` (the same, weighted by
            a/(a + p(w)) and without the common component; p from the corpus).

    Source: SIF is Arora et al. 2017.
    """
    record, sentences = _begun(notebook, method, profile_name, data_dir)
    chosen = profile(profile_name)
    if record.metrics is not None:
        return record
    record.start()
    if method in ("word_vectors", "sif"):
        encoder = Encoder.load(_model(chosen))
        matrix = encoder.backbone.get_input_embeddings().weight.detach().numpy()
        counts = evaluate.token_counts(sentences, encoder.tokenizer) if method == "sif" else None
        encode = evaluate.word_vectors_encode(matrix, encoder.tokenizer, counts)
    else:
        vectorizer = CountVectorizer() if method == "bag_of_words" else TfidfVectorizer().fit(sentences)
        encode = evaluate.bag_of_words_encode(vectorizer)
    scores = experiment.test_scores(encode, chosen, data_dir)
    scores[f"{chosen.dev}_dev_spearman"] = evaluate.pairs_spearman(encode, experiment.dev_pairs(chosen, data_dir))
    record.finish({f"{name}_last": value for name, value in scores.items()})
    return record


def record(notebook: str, method: str, profile_name: str = "small", data_dir: str | None = None) -> runs.Run:
    """The run of a method without training, finished or not.

    Raises:
        ValueError: unknown method.
    """
    return _begun(notebook, method, profile_name, data_dir)[0]


def _model(chosen: Profile) -> str:
    return experiment.model_path(chosen.model or recipe(f"{chosen.recipes}_simcse").backbone)


def _begun(notebook: str, method: str, profile_name: str, data_dir: str | None) -> tuple[runs.Run, list[str]]:
    if method not in METHODS:
        raise ValueError(f"unknown method without training {method!r}: choose one of {', '.join(METHODS)}")
    chosen = profile(profile_name)
    sentences = experiment.sentences_of(chosen, data_dir)
    params = {"profile": chosen.name, "corpus": chosen.corpus, "n_sentences": len(sentences), "test": chosen.test}
    model = experiment.model_hash(_model(chosen)) if method in ("word_vectors", "sif") else ""
    hashes = {"corpus": experiment.text_hash(sentences), "model": model}
    return runs.Run(notebook, f"{profile_name}_{method}", 0, params, hashes), sentences
