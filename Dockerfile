# bertkit's server: docker build -t bertkit . && docker run --read-only -p 8080:8080 bertkit
FROM python:3.13-slim AS build
WORKDIR /source
RUN python -m venv /opt/bertkit
ENV PATH=/opt/bertkit/bin:$PATH
COPY constraints.txt ./
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY models models
RUN pip install --no-cache-dir --constraint constraints.txt '.[serve]' ./models/minilm

FROM python:3.13-slim
COPY --from=build /opt/bertkit /opt/bertkit
RUN useradd --uid 10001 --no-create-home --home-dir /cache bertkit \
    && install -d -o bertkit -g bertkit /cache
# Models of the Hub and temporary files go to /cache; nothing else is written.
ENV PATH=/opt/bertkit/bin:$PATH \
    HOME=/cache \
    HF_HOME=/cache/huggingface \
    TMPDIR=/cache \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
VOLUME /cache
WORKDIR /models
USER 10001:10001
EXPOSE 8080
HEALTHCHECK --start-period=60s --timeout=5s CMD \
    ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/health', timeout=4)"]
ENTRYPOINT ["bertkit", "serve", "--host", "0.0.0.0"]
