"""Which slot of a choice a word fills: a database, a licence, a place, a unit. Two words of one slot are two answers to
the same question. The tables are common knowledge of software work, and hold no project's words.
"""

from __future__ import annotations

_TABLE = """
database: postgres postgresql mysql mariadb sqlite oracle mssql mongodb mongo couchdb dynamodb cassandra cockroachdb \
redis memcached valkey duckdb clickhouse firestore supabase neo4j elasticsearch opensearch leveldb rocksdb lmdb etcd \
influxdb timescaledb bigquery mariadb datenbank
queue: kafka rabbitmq sqs nats pulsar celery sidekiq zeromq kinesis mqtt activemq beanstalkd resque
ui: react vue svelte angular solidjs preact ember lit htmx alpine qwik jquery
server: flask django fastapi starlette tornado express koa fastify nestjs rails sinatra laravel symfony spring axum \
actix rocket phoenix bottle sanic aiohttp
language: python rust golang java kotlin scala c++ c# ruby php perl elixir erlang haskell ocaml zig swift typescript \
javascript js ts lua julia nim dart clojure
format: json yaml toml xml csv tsv parquet avro protobuf msgpack messagepack cbor ini arrow orc hdf5 pickle bson jsonl \
binary plaintext
api: rest graphql grpc soap json-rpc jsonrpc trpc odata
delivery: websocket websockets sse polling webhook webhooks push pull
hash: md5 sha1 sha256 sha-256 sha512 bcrypt scrypt argon2 argon2id pbkdf2 blake2 blake3 xxhash crc32
login: jwt oauth oidc saml cookie cookies passkeys password passwords
licence: mit apache apache-2.0 gpl gpl-3.0 gplv3 agpl agpl-3.0 lgpl bsd mpl mpl-2.0 isc proprietary
indent: tabs tab spaces space
naming: snake_case camelcase pascalcase kebab-case
theme: dark light
tests: pytest unittest nose jest vitest mocha jasmine karma rspec minitest junit testng
browser: cypress playwright selenium puppeteer webdriver
bundler: webpack vite rollup parcel esbuild turbopack rspack
packages: npm yarn pnpm bun pip poetry uv pipenv conda pdm
build: make cmake meson bazel gradle maven ninja ant sbt scons
ci: github-hosted self-hosted jenkins circleci travis buildkite gitlab
host: aws gcp azure hetzner fly.io heroku vercel netlify render digitalocean linode railway lambda ec2
runs: kubernetes k8s nomad compose swarm ecs systemd supervisor pm2 docker podman
channel: email mail slack teams discord telegram sms pagerduty
docs: mkdocs sphinx docusaurus jekyll hugo vitepress gitbook mdbook doxygen
state: redux zustand mobx recoil jotai pinia vuex xstate
css: tailwind bootstrap sass scss bulma styled-components emotion
date: moment date-fns dayjs luxon pendulum
http: axios requests httpx urllib urllib3 ky
orm: sqlalchemy prisma typeorm sequelize drizzle hibernate jooq diesel sqlx peewee
logger: winston pino bunyan log4j logback loguru structlog zap zerolog logrus
format-tool: black yapf autopep8 prettier biome
lint: flake8 pylint ruff eslint biome
proxy: nginx caddy traefik haproxy apache envoy
store: s3 gcs minio disk nfs r2 bucket filesystem festplatte disque disco vault env
optimizer: adam adamw sgd rmsprop adagrad lion
learning: pytorch tensorflow jax keras
plot: matplotlib plotly seaborn bokeh altair d3
maps: mapbox leaflet openlayers openmaptiles openstreetmap googlemaps
packing: gzip brotli zstd lz4 snappy bzip2 xz deflate
ids: uuid uuidv4 uuidv7 uuids ulid ulids auto-increment autoincrement serial nanoid cuid
amount: float floats double decimal decimals integer integers cents
zone: utc localtime
speech: english german french spanish italian dutch portuguese deutsch englisch franzosisch anglais francais allemand \
ingles espanol aleman
tree: b-tree btree gin gist brin trie
order: ascending descending asc desc
page: offset cursor keyset
delete: soft hard
who: manual manually automatic automatically auto
when: eager lazy eagerly lazily
change: mutable immutable
seen: public private internal
needed: required optional mandatory
error: skip abort retry ignore fail continue stop warn
place: random fixed
memory: memory disk in-memory
threads: single-threaded multi-threaded threads processes worker workers async synchronous sync asynchronous
code: monolith microservices monorepo
length: short long brief detailed
lock: optimistic pessimistic
double: mock mocks mocked fake stub real sandbox
colour: red green blue yellow orange purple black white grey gray pink
level: debug info warning error trace verbose
image: alpine debian ubuntu distroless debian-slim slim scratch fedora
side: left right top bottom
integrate: euler verlet rk4 leapfrog
parse: hand-written recursive tree-sitter antlr yacc peg generated
files: one single split separate
listed: allowlist blocklist whitelist blacklist
"""

_SCOPES = """
stage: staging prod production dev development preview local
device: ios android web desktop mobile switch console
part: frontend backend server client ui db database cli api kernel firmware
team: unit integration e2e nightly
step: lexer parser compiler linker optimizer
"""


def _read(table: str) -> dict[str, frozenset[str]]:
    slots: dict[str, set[str]] = {}
    for line in table.strip().splitlines():
        name, _, members = line.partition(": ")
        for member in members.split():
            slots.setdefault(member, set()).add(name)
    return {member: frozenset(names) for member, names in slots.items()}


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split())


_SLOTS, _PARTS = _read(_TABLE), _read(_SCOPES)
_EXCLUSIVE = frozenset(
    "licence indent ids theme docs ui host ci maps date state hash integrate zone amount plot channel".split()
)
_WORDS = frozenset(
    "language delivery login theme store tree order page delete who when change seen needed error place memory"
    " threads code length lock double colour level image side integrate parse files speech zone amount indent"
    " build runs".split()
)
"""Slots whose members are words of any kind, and not names."""
_SAME = _pairs(
    "js=javascript ts=typescript postgresql=postgres mongo=mongodb kubernetes=k8s mail=email argon2=argon2id"
    " tab=tabs space=spaces cookies=cookie mocked=mock mocks=mock integers=integer floats=float uuids=uuid"
    " uuidv4=uuid autoincrement=auto-increment manually=manual automatically=automatic auto=automatic"
    " sync=synchronous async=asynchronous production=prod development=dev deutsch=german englisch=english"
    " anglais=english ingles=english francais=french franzosisch=french aleman=german allemand=german"
    " espanol=spanish apache-2.0=apache gpl-3.0=gpl gplv3=gpl agpl-3.0=agpl sha-256=sha256 workers=worker"
    " processes=worker multi-threaded=worker threads=worker in-memory=memory multi=worker whitelist=allowlist"
)
"""Other spellings and near words of one member: they are no other choice."""


UNITS = {
    unit: name
    for name, units in {
        "time": "ms s sec secs second seconds min mins minute minutes h hour hours day days week weeks month months hz"
        " fps sekunden minuten stunden tage heure heures jour jours minuto minutos hora horas dias segundos",
        "size": "kb mb gb tb kib mib gib bytes byte",
        "share": "percent prozent",
        "tries": "times attempts retries attempt try tries mal fois veces",
    }.items()
    for unit in units.split()
}
"""What is measured, by the words for its units."""


def unit_of(word: str) -> str:
    """What a word in lower case measures: time, size, share or tries; "" for any other word."""
    return UNITS.get(word, "")


def slots_of(word: str) -> frozenset[str]:
    """The slots that a word in lower case may fill."""
    return _SLOTS.get(word, frozenset())


def scopes_of(word: str) -> frozenset[str]:
    """What a word in lower case is a part of, where another part is another subject: a stage, a device, a step."""
    return _PARTS.get(word, frozenset())


def member(word: str) -> str:
    """The word by which all spellings of a choice go."""
    return _SAME.get(word, word)


def is_exclusive(slot: str) -> bool:
    """Whether a project mostly has one answer for a slot, so that another one replaces it whatever else is said."""
    return slot in _EXCLUSIVE


def is_name(word: str) -> bool:
    """Whether a word in lower case is the name of a thing that can be chosen."""
    return bool(slots_of(word) - _WORDS)
