-- Money moves between accounts; the sum of all balances never changes.
-- docs/custom-workloads.md describes this kind of file.

\parameter accounts 100000

\load
DROP TABLE IF EXISTS transfer;
DROP TABLE IF EXISTS account;
CREATE TABLE account (
  id INTEGER NOT NULL PRIMARY KEY,
  balance INTEGER NOT NULL,
  owner VARCHAR(40) NOT NULL
);
CREATE TABLE transfer (
  number BIGINT NOT NULL PRIMARY KEY,
  payer INTEGER NOT NULL,
  payee INTEGER NOT NULL,
  amount INTEGER NOT NULL
);
\rows account :accounts = sequence(1), 1000, string(40)
CREATE INDEX transfer_payer ON transfer (payer);

\transaction transfer 70
\set number sequence(1)
\set payer uniform(1, :accounts)
\set payee uniform(1, :accounts)
\set amount uniform(1, 10)
UPDATE account SET balance = balance - :amount WHERE id = :payer;
UPDATE account SET balance = balance + :amount WHERE id = :payee;
INSERT INTO transfer (number, payer, payee, amount) VALUES (:number, :payer, :payee, :amount);

\transaction look 30
\set id uniform(1, :accounts)
SELECT balance, owner FROM account WHERE id = :id;

\check no money is made or lost
SELECT COUNT(*) FROM (SELECT SUM(balance) AS total FROM account) AS sums WHERE total = 1000 * :accounts;
\check every account is there
SELECT COUNT(*) = :accounts FROM account;
