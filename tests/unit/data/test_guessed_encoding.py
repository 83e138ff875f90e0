"""An encoding is guessed only where it is evident; whatever else isn't UTF-8 stays refused."""

import pytest

from bertkit.data.encodings import describe_guess, guess_encoding

WESTERN = {
    "German": "Sehr schöne Jacke\nGröße fällt zu klein aus\n„Für Mädchen“ – süß, ab 9 €\nhübsch\n",
    "French": "Très bon, livré à l’heure\nDéçu par la qualité\nça marche\ngâché, arrivé hier\n",
    "Spanish": "llegó rápido\n¿Dónde está?\n¡Qué lástima, pequeño!\nMe gustó el diseño, cómodo\n",
    "Portuguese": "Não gostei\nmuito bom, aprovação\nótimo preço\né à beça, coração\n",
    "Swedish": "bra kläder åt mig\nför små\nså fin, jättebra\nhögt och så\n",
}
WESTERN["English"] = "It’s fine, don’t worry – “I’m here”, she’d say\nwe’ll see, a café\n" * 2
OTHERS = {
    "cp1250": "Velmi hezká bunda, skvělá kvalita\nPříliš malé, švy povolily\nRychlé dodání, díky\n",
    "iso8859-2": "Bardzo ładna kurtka, świetna jakość\nZa mały, żal\nPolecam, którzy, część\n",
    "cp1254": "Çok güzel ceket\nBeden küçük, dikişler açıldı\nHızlı teslimat, teşekkürler\nşık\n",
    "cp1251": "Очень хорошая куртка\nСлишком маленькая\nБыстрая доставка\n",
    "shift_jis": "とても良いジャケット\n小さすぎる\n早い配達\n",
    "gb18030": "非常好的夹克\n太小了\n送货很快\n",
    "mac-roman": WESTERN["German"],
    "cp850": WESTERN["German"].replace("„", "").replace("“", "").replace("–", "").replace("€", ""),
    "utf-8": WESTERN["German"],
    "utf-16": WESTERN["German"],
    "ascii": "plain\ntext\nonly\n",
}


@pytest.mark.parametrize("language", WESTERN)
def test_western_europe_is_evident(language):
    content = WESTERN[language].encode("cp1252")
    assert guess_encoding(content) == "cp1252"
    assert guess_encoding(content[:30]) is None  # too little


def test_dashes_and_quotes_of_old_macs_arent_taken_for_letters():
    text = "—It’s fine, he said—don’t “worry”\nSo—we’ll see\n" * 9
    assert guess_encoding(text.encode("mac-roman")) is None
    assert guess_encoding(text.encode("cp1252")) == "cp1252"


@pytest.mark.parametrize("encoding", OTHERS)
def test_other_alphabets_and_what_is_utf8_arent_taken_for_it(encoding):
    assert guess_encoding(OTHERS[encoding].encode(encoding)) is None


def test_the_encoding_of_similar_files_is_tried_first_but_never_instead_of_utf8():
    czech = OTHERS["cp1250"]
    assert guess_encoding(czech.encode("cp1250"), "cp1250") == "cp1250"
    assert guess_encoding(czech.encode(), "cp1250") is None
    assert guess_encoding(WESTERN["German"].encode("cp1252"), "shift_jis") == "cp1252"


def test_a_guess_is_described_by_a_word_that_shows_whether_it_is_right():
    shown = describe_guess("plain, Größe".encode("cp1252"), "cp1252")
    assert shown == "read as cp1252, since it isn't UTF-8, such as 'Größe'"


def test_a_kept_encoding_in_which_all_bytes_are_letters_needs_evidence():
    assert guess_encoding("Отличный товар, всё хорошо\n".encode("cp1251") * 5, "cp1252") is None
    assert guess_encoding("Größe “S”\n".encode("cp1252") * 4, "latin-1") == "cp1252"
