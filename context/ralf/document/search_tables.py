"""The tables of `index.db` that search stands on. `ralf.finding` fills and asks them; they are made with the others.

searched  of each route that search has read: up to which place of its journal, and whether it has foreign records
unit      what one hit shows; its id begins with the number of its route
piece     the text of a unit in pieces that are looked up each; its rowid begins with the id of its unit
vector    what an embedder made of a text, by the text's sha256
embedder  what is known of a configured command: its failures
"""

SCHEMA = """
drop table if exists searched;
drop table if exists unit;
drop table if exists piece;
drop table if exists vector;
drop table if exists embedder;
create table searched(number integer primary key, route text unique, token text, mark text, is_foreign integer);
create table unit(
    id integer primary key, key text, kind text, label text, status text, successor text, at text, session text,
    first integer, last integer
);
create index unit_decision on unit(label) where kind = 'decision';
create index unit_session on unit(session, first) where kind in ('turn', 'text');
create virtual table piece using fts5(text, parts, mark, tokenize='porter unicode61');
create table vector(command text, text text, numbers blob, primary key(command, text)) without rowid;
create table embedder(command text primary key, failures integer, reason text, is_slow integer) without rowid;
"""
