"""Principals from certificates: as Java 17 writes these subjects, and as Kafka's rules map them."""

from __future__ import annotations

import pytest

from kcluster.security.certificate_names import mapping_rules, principal_name, subject_name

SUBJECTS = {
    "CN=alice,OU=Ops,O=Example Inc\\, Ltd,L=Bern,ST=BE,C=CH": (
        "3062310b3009060355040613024348310b3009060355040813024245310d300b060355040713044265726e3119"
        "3017060355040a13104578616d706c6520496e632c204c7464310c300a060355040b13034f7073310e300c0603"
        "5504031305616c696365"
    ),
    "CN=a+OU=b,O=c": ("3022310a3008060355040a1301633114300806035504031301613008060355040b130162"),
    "OU=a+CN=longer,O=c": (
        "3027310a3008060355040a13016331193008060355040b130161300d060355040313066c6f6e676572"
    ),
    "1.2.840.113549.1.9.1=#16056140622e63,CN=x": (
        "3022310a300806035504031301783114301206092a864886f70d01090116056140622e63"
    ),
    "2.5.4.5=#13023132,UID=u,DC=d,STREET=s,2.5.4.12=#1304626f7373,CN=x\\=y": (
        "305c310c300a06035504031303783d79310d300b060355040c1304626f7373310a300806035504091301733111"
        "300f060a0992268993f22c6401191601643111300f060a0992268993f22c640101130175310b3009060355040513"
        "023132"
    ),
    'CN=q\\"uote\\;\\<\\>': "30143112301006035504030c097122756f74653b3c3e",
    "CN=\\ \\ two\\ \\ ": "30123110300e06035504031307202074776f2020",
    "CN=\\ \\ ": "300d310b3009060355040313022020",
    "CN=\\#hash": "3010310e300c06035504030c052368617368",
    "CN=a\\#b": "300e310c300a06035504030c03612362",
    "CN=ünï": "3010310e300c06035504030c05c3bc6ec3af",
    "OU=\\00": "300c310a3008060355040b0c0100",
    "": "3000",
}
"""What X500Principal.getName returned, and getEncoded."""

ALICE = "CN=alice,OU=Ops,O=x"


@pytest.mark.parametrize("name", SUBJECTS)
def test_subject__is_written_as_java_writes_it(name: str) -> None:
    assert subject_name(bytes.fromhex(SUBJECTS[name])) == name


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", ALICE),
        ("RULE:^CN=(.*?),.*$/$1/", "alice"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U", "ALICE@OPS"),
        ("RULE:^cn=(.*?),.*$/$1/, RULE:^CN=(.*?),.*$/$1/L", "alice"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$12/", "alice@alice2"),
        ("RULE:^CN=(.*?),.*$/$1-$2/", "alice-$2"),
        ("RULE:^CN=(.*?),.*$/a\\$1/", "a$1"),
        ("RULE:^CN=(?<who>.*?),.*$/$1/", "alice"),
        ("RULE:.*/x/", "xx"),  # Java's replaceAll replaces the empty rest, too
        ("RULE:^CN=nobody$/$1/,,DEFAULT", ALICE),
        ("RULE:^CN=(al\\w+),OU=Ops,O=x$/$1\\/1/", "alice/1"),
        ("RULE:^CN=nobody$/$1/", None),
        ("", None),
    ],
)
def test_rules__the_first_that_matches_names_the_client(rules: str, name: str | None) -> None:
    assert principal_name(mapping_rules(rules), ALICE) == name


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "rule:^CN=(.*?)$/$1/",
        "RULE:^CN=(.*?)$/$1/L/U",
        "RULE:^CN=(.*?)$/LU",
        "RULE:^CN=((.*?)$/$1/",
        "DEFAULT RULE:^CN=(.*?)$/$1/",
    ],
)
def test_rules__what_is_none_is_refused(rules: str) -> None:
    with pytest.raises(ValueError, match="not a r"):
        mapping_rules(rules)
