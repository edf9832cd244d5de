# The course in JupyterLab, with torch for the CPU:
#   docker build -t contrastive-sentence-embeddings .
#   docker run --init --rm -p 8888:8888 contrastive-sentence-embeddings
# and open the address with the token that it prints. To keep what you train, add
#   -v cse-outputs:/project/outputs
# `--build-arg TORCH_INDEX=` (empty) takes torch from pip's own index, which on Linux is built for
# CUDA: that is the image for workflow/profiles/kubernetes.
FROM python:3.12-slim

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore \
    PYTHONUNBUFFERED=1 HF_HUB_DISABLE_TELEMETRY=1

RUN useradd --create-home --uid 1000 learner
WORKDIR /project
RUN chown learner:learner /project

ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY constraints.txt ./
RUN if [ -n "$TORCH_INDEX" ]; then \
        python -m pip install --no-deps --index-url "$TORCH_INDEX" \
            "torch==$(sed -n 's/^torch==//p' constraints.txt)"; \
    fi

# The packages before the code, so that a change of code does not install them anew: the editable
# install notes only where the folder lib is.
COPY pyproject.toml README.md LICENSE LICENSES.md ./
COPY --chown=learner:learner lib/__init__.py lib/
RUN python -m pip install -c constraints.txt -e '.[test,reference,cluster,classroom,book]'

COPY --chown=learner:learner . .

USER learner
EXPOSE 8888
CMD ["python", "-m", "tools.lab", "--ip=0.0.0.0", "--port=8888", "--no-browser"]
