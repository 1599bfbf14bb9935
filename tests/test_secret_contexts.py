"""A secret is told by what stands around it: a name and what joins it, a command, a table, an announcement."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterable, Sequence
from re import _parser as parser  # type: ignore[attr-defined]  # no other module parses expressions
from typing import Any

import pytest

from ralf.redact import commands, rules, table
from ralf.redact.redactor import Redactor
from ralf.transcripts.events import START, Event

REDACTOR = Redactor(b"k" * 32)
CHOSEN, RANDOM = "Winter2031!", "q7Rt2bVx9MpL4sKd8WzY3nCf"
BODY = "\n".join(f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7{n:012d}" for n in range(6))
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\nabcd3f==\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "text",
    [
        "SMTP_PASS={}",  # names
        "smtpPass: {}",
        "LDAP_BIND_PW={}",
        "ldapBindPw = '{}'",
        "PASSWORDS='{}'",
        "contraseña: {}",
        "密码\uff1a{}",
        "mot de passe : {}",
        "  admin_password: |\n    {}\n  port: 1",  # what joins them
        "password ?= '{}'",
        "$password .= '{}';",
        "PASSWORD :::= '{}'",
        "CREATE ROLE app LOGIN PASSWORD '{}';",
        "ENV DB_PASSWORD {}",
        'setx DB_PASSWORD "{}"',
        "set -x DB_PASSWORD {}; fish",
        "setenv DB_PASSWORD {}",
        "gh secret set DB_PASSWORD --body {} --repo o/r",
        "aws ssm put-parameter --name /app/db_password --value {} --type SecureString",
        "db_password=SecretStr('{}') port=1",
        "[Environment]::SetEnvironmentVariable('DB_PASSWORD', '{}', 'User')",
        "Server=h;Uid=sa;Pwd={};",
        'public string DbPassword {{ get; set; }} = "{}";',
        'variable "db_password" {{\n  default = "{}"\n}}',
        "<Password><Value>{}</Value></Password>",
        "<key>dbPassword</key>\n<string>{}</string>",
        "<adminPassword>\n   {}\n</adminPassword>",
        'form-data; name="password"\r\n\r\n{}\r\n--x',
        "{{'password': ['{}']}}",
        "| variable | value |\n| --- | --- |\n| `DB_PASSWORD` | `{}` |",  # tables
        " id | db_password \n----+------\n 7 | {}\n(1 row)",
        "user,password,home\nbob,{},/x",
        "name\tpassword\nbob\t{}",
        "Key     Value\n---     -----\ndb_password  {}",
        "db_password | {}\nname | ci",
        "- **Password:** {}",  # text
        "set `DB_PASSWORD` to `{}` please",
        "the db password is {} please deploy",
        "logged in with password {} from 1.2.3.4",
        "Use the following password to proceed:\n\n{}\n\nIt is kept in",
        "A temporary password is generated for root@localhost: {}",
        "requirepass {}\nport 1",
        "https://{}@git.test/a/b.git",
        "Authorization: Bearer {}",
        'static DB_PASSWORD: &str = r#"{}"#;',  # languages' strings and declarations
        'var dbPassword = @"{}";',
        'const db_password: []const u8 = "{}";',
        'const char db_password[] = "{}";',
        'std::string dbPassword{{"{}"}};',
        "param dbPassword string = '{}'",
        '{{db_password, <<"{}">>}},',
        'Client::builder().db_password("{}")',
        'db_password: str = Field(default="{}", alias="x")',
        'parser.add_argument("--db-password", default="{}")',
        "process.env.DB_PASSWORD || '{}'",
        'assert settings.db_password == "{}"',
        "(Pdb) p self.db_password\n'{}'",  # what a prompt answers
        "In [3]: db_password\nOut[3]: '{}'",
        '"db_password": {{"value": "{}", "type": "string"}},',  # values under names of their own
        '{{"ParameterKey": "DbPassword", "ParameterValue": "{}"}}',
        '<property name="app.db.password">{}</property>',
        "<db-password><![CDATA[{}]]></db-password>",
        '<meta name="db-password" content="{}">',
        "db_password: &t {}",
        "Das Passwort lautet {} und gilt ab heute.",  # languages of people
        'Const DbPassword As String = "{}"',
        "local db_password = [[{}]]",
        'DB_PASSWORD = (\n    "{}"\n)',
        "db_password = <<EOT\n{}\nEOT",
        'db_password = """{}"""',
        'DbPassword:\n  Type: String\n  Default: "{}"',
        "<dt>Db password</dt><dd><code>{}</code></dd>",
        "La password \u00e8 {}",
        "\u043f\u0430\u0440\u043e\u043b\u044c \u043e\u0442 \u0431\u0430\u0437\u044b \u2014 {}",
        "\u30d1\u30b9\u30ef\u30fc\u30c9\u306f\u300c{}\u300d\u3067\u3059",
        "try login/password: bob@mail.test / {}",  # two labels, two values
        "the root password of the old mail server is {}, as before",
        "mot de passe : \u00ab {} \u00bb",
        "insert into users (name, password) values ('bob', 'x7'), ('eve', '{}');",
        "level=info user=bob password={} took=3ms",
        "set :db_password, '{}'",
        '<Pass encoding="plain">{}</Pass>',
    ],
)
def test_a_password_is_found_by_its_name_however_that_is_joined_with_it(text: str) -> None:
    assert CHOSEN not in REDACTOR.text(text.format(CHOSEN))


@pytest.mark.parametrize(
    "value",
    [
        "天地玄黄宇宙洪荒",
        "\u0431\u043e\u0440\u043e\u0434\u0430\u0039",
        "Überwald47!",
        "copper🔑284",
        "tulipharborfalcon",
        "tulip-harbor-falcon-marble",
        "Tulip.Harbor.Falcon27",
    ],
)
@pytest.mark.parametrize("text", ["DB_PASSWORD={}", "db_password: {}", '"db_password": "{}"', "| db_password | {} |"])
def test_a_password_of_another_alphabet_or_of_joined_words_is_found(text: str, value: str) -> None:
    assert value not in REDACTOR.text(text.format(value))


def test_a_password_that_json_escapes_is_found() -> None:
    assert "u5929" not in REDACTOR.text('{"msg": "using db_password=\\u5929\\u5730\\u7384\\u9ec4\\u5b87\\u5b99 now"}')


def test_a_pass_phrase_is_found_also_without_quotes_to_the_end_of_its_line() -> None:
    for text in ("db_password: {}\nport: 1", "DB_PASSWORD='{}'", 'Environment="DB_PASSWORD={}"'):
        assert "harbor" not in REDACTOR.text(text.format("tulip harbor falcon marble"))


@pytest.mark.parametrize(
    "text",
    [
        "ACME_KEY={}",
        "acmeKey: '{}'",
        "RAILS_MASTER_KEYS={}",
        "vendor:\n  key: {}\n  x: 1",
        "// {} is the acme token",
        "acmeToken,{},",
        "|acme_token|{}|",
        "https://x.test/a?b=1&sig={}",
        "https://x.test/cb?code={}&state=x",
        "client secret - {}",
        'proxy_set_header X-Api-Key "{}";',
        "echo '{}' | vercel env add API_KEY production",
        "curl -b 'sid={}; theme=dark' https://x.test",
        "https://x.test/reset-password/{}",
        ".x.test\tTRUE\t/\tTRUE\t1799999999\tsid\t{}",
    ],
)
def test_a_random_value_is_found_by_what_calls_it_a_key_a_token_or_a_signature(text: str) -> None:
    assert RANDOM not in REDACTOR.text(text.format(RANDOM))


@pytest.mark.parametrize("name", ["public_key", "PRIMARY_KEY", "foreignKey", "sort_key", "CACHE_KEY", "partitionKey"])
def test_a_key_that_opens_nothing_stays(name: str) -> None:
    text = f'{name}: "{RANDOM}"'
    assert REDACTOR.text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "http -a admin:{} GET api.test",
        "sqlcmd -S h -U sa -P {} -Q 'select 1'",
        "newtool login -u bob -p {} h.test",
        "az keyvault secret set --vault-name v --name x --value {}",
        "gh secret set TOKEN -b {}",
        "vercel -t {} deploy",
        "rclone config create x sftp user a pass {}",
        "mc admin user add x bob {}",
        "virsh set-user-password vm root '{}'",
        "bw unlock '{}' --raw",
        "vmrun -gu a -gp {} list",
        "openssl dgst -sha256 -hmac '{}' a",
        "cvs -d :pserver:a:{}@h:/r login",
        'openvpn --auth-user-pass <(echo -e "a\\n{}")',
        "db.test:5432:app:admin:{}",
        "##vso[task.setvariable variable=DB_PASS]{}",
        "sudo -S apt update <<< '{}'",
        "echo 'bob:{}' | sudo chpasswd",
        "echo -e '{0}\\n{0}' | passwd bob",
        "echo {} | gpg --batch --passphrase-fd 0 -d a.gpg",
        "sqlplus scott/{}@db",
        "lftp -u bob,{} sftp://h",
        "net use Z: \\\\h\\s {} /user:bob",
        "xfreerdp /u:bob /p:{} /v:h",
        "requests.get(u, auth=('bob', '{}'))",
        'DriverManager.getConnection(url, "root", "{}")',
        "bcrypt.hashSync('{}', 10)",
        "page.getByLabel('Password').fill('{}')",
        'spawn ssh h; expect assword; send "{}\\r"',
        'ConvertTo-SecureString "{}" -AsPlainText -Force',
        "ssh-keygen -t ed25519 -N '{}' -f id",
        "mc alias set x https://s3.test admin {}",
        "htpasswd -nbB bob {}",
        "rabbitmqctl add_user app {}",
    ],
)
def test_a_password_is_found_by_the_command_or_the_call_that_takes_it(text: str) -> None:
    assert CHOSEN not in REDACTOR.text(text.format(CHOSEN))


@pytest.mark.parametrize(
    "text",
    [
        *("docker run -u 1000 -p 8080:80 app", "ssh -l bob -p 2222 h", "sudo -u bob mkdir -p src/a2b/c33"),
        *("make -k test2", "echo step12 | tee log", "git login --help", "login('bob', 'home')"),
    ],
)
def test_a_command_that_takes_no_password_stays(text: str) -> None:
    assert REDACTOR.text(text) == text


# ---- private keys ----


@pytest.mark.parametrize(
    "line",
    ["deploy/id_rsa:{}", "deploy/id_rsa:12:{}", "app-1  | {}", "2031-01-01T00:00:07Z {}", "    {}", "+{}", "'{}\\n' +"],
)
def test_a_private_key_is_found_behind_whatever_stands_before_its_lines(line: str) -> None:
    whole = "\n".join(line.format(each) for each in KEY.split("\n"))
    begun = "\n".join(whole.split("\n")[:4])
    ended = "\n".join(whole.split("\n")[-4:])
    for text in (whole, f"before\n{whole}\nbehind", begun + "\n", ended):
        shown = REDACTOR.text(text)
        assert not any(each in shown for each in BODY.split("\n")), shown
    assert REDACTOR.text(f"before\n{whole}\nbehind").endswith("\nbehind")


def test_a_private_key_is_found_in_a_page_and_in_base64() -> None:
    coded = base64.b64encode(KEY.encode()).decode()
    wrapped = "\n".join(coded[place : place + 76] for place in range(0, len(coded), 76))
    for text in (f"TLS={coded}", f"    client-key-data: {coded}", f"$ base64 k\n{wrapped}\n$ ls"):
        shown = REDACTOR.text(text)
        assert coded[100:130] not in shown
        assert wrapped.split("\n")[-2] not in shown
    assert "MIIEvQ" not in REDACTOR.text(KEY.replace("\n", "<br>"))


def test_the_base64_of_a_certificate_stays() -> None:
    coded = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n" + b"MIIC" * 40).decode()
    assert REDACTOR.text(f"client-certificate-data: {coded}") == f"client-certificate-data: {coded}"


# ---- announced ----


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('MNEMONIC="{}"', " ".join(["abandon", "zebra", "youth", "wrist"] * 3)),
        ("my seed phrase is {} so", " ".join(["abandon", "zebra", "youth", "wrist"] * 3)),
        ("Recovery codes:\n{}\nKeep them", "dbq6n-t4ukc\ndlwu1-wo741"),
        ("Can't scan? Enter this key: {}", "tcnw dxje gybj 2fqi a6go"),
        ("Your verification code is {}. It", "428731"),
    ],
)
def test_what_a_text_announces_and_sets_apart_is_found(text: str, secret: str) -> None:
    assert secret not in REDACTOR.text(text.format(secret))


# ---- what is no secret ----


@pytest.mark.parametrize(
    "text",
    [
        "password = hash_password(raw2)",  # calls
        "token = client.get('github_token')",
        'api_key = os.environ.get("ACME_API_KEY_V2")',
        'password = getpass("Enter password 2: ")',
        "secretName: app-tls-secret-7f9c4",  # Kubernetes' names
        "token: default-token-x7k2p",
        'token: "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"',  # images
        "secret_image: iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ",
        '"cookie": "^0.7.1"',  # version constraints
        "token>=1.2.3",
        '"jsonwebtoken": "~9.0.2"',
        "password: SecretStr",  # type names
        "token: JWTToken2",
        "secret: bytes32",
        "password: Optional[str] = None",
        '    "AWS::IAM::AccessKey": "72c2d9dd90025459",',
        "arn:aws:secretsmanager:us-west-2:123456789012:secret:MySecret1-a1b2c3",
        '"NextToken": "CpHNsscimcV5oH7bSbub03CI2Qms5ypNpNm53"',
        '"ClientToken": "550e8400-e29b-41d4-a716-446655440000"',
        "cache key: build-482b71198626fbc76a6d8f8141b1ff9fa1d3dfe6",
        "    --- PASS: TestTruncateAtUUID/truncate_at_u2 (0.00s)",
        "PWD=/home/dev/x2y33",
        "the password is required; the token is sha256, the key is AES256",
        "Use this key with care: it opens more than most",
        "password\nsyscmdlist.append(name2)",
        "sorted(found, key=lambda hit: hit.start2)",
        "(token, secret, password)\n(one1234, two1234, tri1234)",
        "  --password      Prompt for it\n  --token string  Read it2 from there",
        'name="POST /token" duration=2966ms span=3',
        "  password: {{ .Values.auth.password | b64enc | quote }}",
        '{"required":["password"],"properties":{"password":{"minLength":12}}}',
        'resolved "https://registry.test/js-tokens/-/js-tokens-4.0.0.tgz#19203fb59991df98e3a287050d4647cdeaf32499"',
    ],
)
def test_what_only_stands_near_a_name_stays(text: str) -> None:
    assert REDACTOR.text(text) == text


# ---- the table ----


@pytest.mark.ci
def test_each_row_of_the_table_finds_its_example() -> None:
    """A row of commands and calls has one; of a token's row its own expression makes one."""
    for row in table.rows("calls"):
        assert CHOSEN not in REDACTOR.text(row[4].replace("\\n", "\n").replace("SECRET", CHOSEN)), row
    for row in table.rows("prints"):
        assert list(commands.printed(row[1], "correct-horse7\n")), row
    dice = random.Random(1)  # noqa: S311
    for one in rules.formats():
        for literal, pattern in zip(one.literals, one.patterns, strict=True):
            token = next(filter(REDACTOR.hits, (f"at {made(pattern, dice)} now" for _ in range(40))), "")
            assert token.startswith(f"at {literal}"), (one.kind, literal)


def made(pattern: str, dice: random.Random) -> str:
    """A text that an expression of the table matches."""

    def of(tree: Iterable[tuple[Any, Any]]) -> str:
        return "".join(one(str(operation), argument) for operation, argument in tree)

    def one(operation: str, argument: Any) -> str:
        if operation == "LITERAL":
            return chr(argument)
        if operation == "IN":
            letters = []
            for kind, value in argument:
                letters += map(chr, range(value[0], value[1] + 1) if str(kind) == "RANGE" else [value])
            return dice.choice(letters)
        if operation == "BRANCH":
            return of(dice.choice(argument[1]))
        if operation == "SUBPATTERN":
            return of(argument[3])
        if operation.endswith("REPEAT"):
            return "".join(of(argument[2]) for _ in range(max(argument[0], min(argument[1], 1))))
        return ""

    return of(parser.parse(pattern))


@pytest.mark.parametrize(
    ("command", "output", "shown"),
    [
        ("vault kv get -field=value secret/app", "Winter2031!\n", False),
        ("echo $DB_PASSWORD", "Winter2031!", False),
        ("printenv DB_PASSWORD", "Berlin2031.\n", False),
        ("redis-cli config get requirepass | tail -1", "3f786850e387550fdab836ed7e6dc881de23001b", False),
        ("jq -r .apiKey config.json", "q7Rt2bVx9MpL4sKd8WzY3nCf\n", False),
        ("cat /run/secrets/db", "q7Rt2bVx9MpL4sKd8WzY3nCf", False),
        ("pwgen 12 2", "Winter2031!\nq7Rt2bVx9MpL\n", False),
        ("echo $API_TOKEN", "\n", True),
        ("echo $API_TOKEN", "ok", True),
        ("cat token.py", "return2\n", True),
        ("git log -1 --grep token --format=%H", "3f786850e387550fdab836ed7e6dc881de23001b", True),
        ("ls", "q7Rt2bVx9MpL4sKd8WzY3nCf is a folder", True),
        ("gh auth token", "error: not logged in\n", True),
        ("grep -c password a", "12", True),
    ],
)
def test_what_a_call_prints_that_names_a_secret_is_one(command: str, output: str, *, shown: bool) -> None:
    call = Event("call", command, START, START, tool="Bash", input={"command": command}, call_id="c1")
    printed = Event("result", output, START, START, tool="Bash", call_id="c1")
    (_, found), _ = REDACTOR.events([call, printed])
    assert (found.text == output) is shown


@pytest.mark.parametrize("row", table.rows("languages"), ids=lambda row: row[0])
def test_a_secret_is_found_by_what_it_is_called_in_many_languages(row: Sequence[str]) -> None:
    for column, secret in ((1, CHOSEN), (2, RANDOM)):
        for name in row[column].split(", "):
            for text in (f"{name}: {secret}", f"- **{name}:** `{secret}`", f"| {name} | {secret} |"):
                assert secret not in REDACTOR.text(text), text


@pytest.mark.parametrize(
    "text",
    [
        '{{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "d": "{}"}}',
        "<RSAKeyValue><Modulus>q7Rt2bVx</Modulus><D>{}</D></RSAKeyValue>",
        "https://maker.ifttt.com/trigger/x/with/key/{}",
        "https://chat.x.test/hooks/{}",
        "Access key,Secret access key\nAKIA,{}",
        '"name","password"\n"bob","{}"\n',
        "NAME   password\nbob    {}\n",
        "curl -K - <<< 'user = \"bob:{}\"'",
        "docker login -u bob --password-stdin <<< {}",
        "acme_live_{}",
    ],
)
def test_a_random_secret_is_found_in_key_material_addresses_tables_and_here_strings(text: str) -> None:
    assert RANDOM * 2 not in REDACTOR.text(text.format(RANDOM * 2))


@pytest.mark.parametrize(
    "text",
    [
        *("DB_PASSWORD=op://Private/db/password", "api_token: ${{ secrets.API_TOKEN }}"),  # references
        *(
            "password = random_password.x.result",
            "password: !Ref DbPassword",
            "password: vault:secret/data/db#password",
        ),
        *('"password": "Passwort",', '"password": "Mot de passe oublié ?"', '"密码": "请输入密码"'),  # translations
        *('<Row key="row-4b1d9f3c" />', "<div key='550e8400-e29b-41d4-a716-446655440000'>"),  # React's keys
        "//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXSwibmFtZXMiOltdfQ==",
        *(
            "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
            "x-request-id: 550e8400-e29b-41d4-a716-446655440000",
        ),  # headers
        *("bypass=true2", "compass: N45E", "tokenizer: cl100k_base", '"designToken": "color.primary.500"'),
        *("price_1MoBy5LkdIwHu7ixZhnattbh", "pk_live_51H8sKd8WzY3nCfq7Rt2bVx9", "docker login registry2.test:5000"),
    ],
)
def test_references_translations_and_ids_stay(text: str) -> None:
    assert REDACTOR.text(text) == text


IN_ANY_LANGUAGE = (
    "{label}\uff1a{value}",
    "{label}:\n    {value}\n",
    '{label} "{value}"',
    "{label} ({value})",
    "# {label}\nDB_VALUE = '{value}'",
    "x,{label}\nbob,{value}\n",
    "<tr><th>x</th><th>{label}</th></tr><tr><td>bob</td><td>{value}</td></tr>",
    '{{"{label}": "{value}"}}',
)


@pytest.mark.parametrize("form", IN_ANY_LANGUAGE)
def test_a_label_and_its_value_are_joined_the_same_way_in_every_language(form: str) -> None:
    for row in table.rows("languages"):
        for column, secret in ((1, "tiger!4821Q"), (2, RANDOM), (3, "483920")):
            label = row[column].split(", ")[0] if column < len(row) else ""
            if label:
                text = form.format(label=label, value=secret)
                assert secret not in REDACTOR.text(text), text


@pytest.mark.parametrize(
    "text",
    [
        "密码是Tiger#4821",
        "Salasanasi on Tiger#4821",
        "> **Пароль**\n> Tiger#4821",
        "पासवर्ड tiger!4821Q है",
        "Şifre şudur: tiger!4821Q",
        "Das Passwort für den Server ist tiger!4821Q.",
    ],
)
def test_a_sentence_tells_a_password_in_the_words_of_its_language(text: str) -> None:
    assert "4821" not in REDACTOR.text(text)


@pytest.mark.parametrize(
    "text",
    [
        "密码长度必须为8到20位",
        "パスワードは8文字以上で入力してください",
        "Пароль должен содержать не менее 8 символов.",
        "كلمة المرور: مطلوبة",
        "apiKey: import.meta.env.VITE_API_KEY_2,",
        "const tokenRe = /^[A-Za-z0-9_-]{20,40}$/;",
        "secret: !GetAtt Db1.Secret.Arn",
        "python-dotenv-secret 2.0.0rc1",
        "DB_PASSWORD 7c9e6679f7425d3a   2h ago\n",
        'kind: Secret\nmetadata:\n  name: db-password\n  resourceVersion: "184467"\n',
        "01HQ3K9V8X7Z2M4N6P8R0S1T2V",
        "Das Passwort für user2 wurde zurückgesetzt.",
        "PIN 123456 used in docs",
        "암호화 알고리즘: AES-256-GCM",
        '# token\nname = "build-linux-x64"',
        "<tr><th>Password</th></tr><tr><td>min. 12 chars</td></tr>",
        "ok github.com/x/y/token2 0.012s",
        "Cache restored from key: linux-pip-3.11-7d865e959b2466918c9863afca942d0fb89d7c9a",
    ],
)
def test_prose_code_and_ids_near_a_name_stay_also_at_the_end_of_a_result(text: str) -> None:
    event = Event(kind="result", text=text, start=0, end=1)
    assert REDACTOR.events([event])[0][0].text == text


@pytest.mark.parametrize(
    "password", ["trowel.cymbal.vinegar", "anvil_marigold_hobnail", "Junip3r&Ladle1", "%Zither6!Ladle"]
)
def test_words_that_any_sign_joins_are_a_password_and_no_name_of_code(password: str) -> None:
    assert password not in REDACTOR.text(f"the admin password is {password}, try again")
    for name in ("settings.database.primary", "user_login_form"):
        assert name in REDACTOR.text(f"the admin password is {name}, try again")


@pytest.mark.parametrize(
    "text",
    [
        "github.com/tide/token v7.5.19 h1:kBcT4X3qMF3N1wPw/buHUbIt+ba1rQhET7fdWA+G6Rg=",
        "Setting up passwd (1:4.13+dfsg1-1+b1) ...",
        "id,key,label,pass\n9573,quarry,Raisin,yes\n7,sorrel,Other,no",
        '  - task: UsePythonVersion@0\n  - script: pytest -k "password and not tide"',
        "gcloud secrets versions access latest --secret=tide-tickets-smtp",
    ],
)
def test_versions_sums_rows_and_names_beside_what_names_a_secret_stay(text: str) -> None:
    assert REDACTOR.text(text) == text


def test_what_goes_on_from_a_printed_secret_is_a_part_of_it() -> None:
    call = Event("call", "gh auth token", START, START, tool="Bash", input={"command": "gh auth token"}, call_id="c1")
    first = Event("result", "q7Rt2bVx9MpL4s", START, START, tool="Bash", call_id="c1")
    for rest, shown in (("Kd8WzY3nCf", False), ("3f786850e387550fdab836ed7e6dc881de23001b", True), ("ok, go on", True)):
        second = Event("result", rest, START, START, tool="Bash", call_id="c2")
        found, _ = REDACTOR.events([call, first, second])
        assert (found[2].text == rest) is shown


@pytest.mark.parametrize("value", ["thimbl3_spruce42", "Cactus.Osprey40", "blue_heron_77", "Bandit22", "Bruno_2020!"])
@pytest.mark.parametrize(
    "text", ["password: {}", "the password is {}, try it", "db_password={} host=a", "(password {})"]
)
def test_words_that_a_person_makes_a_password_of_are_one_where_something_calls_them_so(text: str, value: str) -> None:
    assert value not in REDACTOR.text(text.format(value))


@pytest.mark.parametrize(
    "value", ["user_password2", "user_id2", "new_password1", "ubuntu-22", "sha256", "test_user_10"]
)
def test_names_of_code_and_products_are_no_passwords(value: str) -> None:
    assert REDACTOR.text(f"the password is {value} now") == f"the password is {value} now"


_SEED = "legal winner thank year wave sausage worth useful legal winner thank yellow"


@pytest.mark.parametrize(
    "text",
    [
        "my seed phrase is {} and it stays here",
        "Recovery phrase (12 words):\n{}",
        "wallet:\n" + "\n".join(f"{number}. {word}" for number, word in enumerate(_SEED.split(), 1)),
        '"mnemonic": ["' + '", "'.join(_SEED.split()) + '"]',
    ],
)
def test_the_words_of_a_wallet_are_found_however_they_are_listed(text: str) -> None:
    shown = REDACTOR.text(text.format(_SEED))
    assert "legal" not in shown
    assert "yellow" not in shown


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the password of the ingest database?", "S@ffr0n636#9"),
        ("Please give me the token for the registry.", "sure, rkUhZgf1hDrfJtg6fqSetHDOj1ZPreKCEqG3RXCgX"),
    ],
)
def test_a_secret_that_answers_a_question_for_it_is_redacted(question: str, answer: str) -> None:
    events = [Event("assistant", question, START, START), Event("user", answer, START, START)]
    assert answer.split()[-1] not in REDACTOR.events(events)[0][1].text


@pytest.mark.parametrize("answer", ["yes, use login2.py", "it is in 1Password", "see config/app.yml", "go on"])
def test_an_answer_without_a_secret_stays(answer: str) -> None:
    events = [Event("assistant", "What is the password?", START, START), Event("user", answer, START, START)]
    assert REDACTOR.events(events)[0][1].text == answer


def test_what_a_command_prints_that_prints_secrets_is_redacted_within_json_too() -> None:
    for call, output in (
        ("az storage account keys list -n a", '[{{"keyName": "key1", "permissions": "FULL", "value": "{}"}}]'),
        ("cat /etc/pgbouncer/userlist.txt", '"grafana" "{}"'),
    ):
        value = "q8sD3kfj2lKJ3lkfjsdlkfj3lkfjLKJ3lkjsdlfkA"
        assert list(commands.printed(call, output.format(value))), call


@pytest.mark.parametrize(
    "call",
    ["login('bob', '{}')", 'WiFi.begin("barn", "{}");', "ftp = FTP('h.test', 'root', '{}')", 'hmac.new(b"{}", m)'],
)
def test_what_a_call_is_given_that_logs_in_is_redacted(call: str) -> None:
    assert CHOSEN not in REDACTOR.text(call.format(CHOSEN))


def test_what_a_call_is_given_that_names_a_place_stays() -> None:
    for call in ("connect('db-web01.example.org:5432')", "authenticate('bob@example.org')", "bind('0.0.0.0', 8080)"):
        assert REDACTOR.text(call) == call
