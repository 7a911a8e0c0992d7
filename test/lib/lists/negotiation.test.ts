import t from 'tap'
import { prefersCsv, takeCsvFormat } from '../../../lib/lists/negotiation.ts'

t.test('CSV is chosen where it is named and nothing has a higher weight', async (t) => {
  for (const [accept, csv] of [
    [undefined, false],
    ['', false],
    ['*', false],
    ['*/*', false],
    ['application/json', false],
    ['application/x-ndjson', false],
    ['text/html, */*', false],
    ['text/csv', true],
    ['TEXT/CSV', true],
    [' text/csv ', true],
    ['text/csv;charset=utf-8', true],
    ['text/csv; header=present; charset="UTF-8"', true],
    ['text/csv; charset="a,b;text/csv"', false],
    ['text/csv;charset=utf-8;q=0.2, application/json', false],
    ['text/csv;header=present;q=0.9, application/json;q=0.8', true],
    ['text/csv;header=absent;q=0.9, application/json;q=0.8', false],
    ['text/csv;Q=0.7, application/json;q=0.8', false],
    ['text/csv, application/json', true],
    ['application/json, text/csv', false],
    ['application/json;q=0.9, text/csv', true],
    ['text/csv;q=0.9, application/json', false],
    ['text/csv;q=0.5, application/x-ndjson;q=0.6', false],
    ['text/csv, */*', true],
    ['*/*, text/csv', true],
    ['text/csv, */*;q=0.1', true],
    ['text/csv;q=0.5, */*', false],
    ['text/csv;q=0.5, application/*', false],
    ['text/csv;q=0', false],
    ['text/csv;q=0, */*', false],
    ['text/*', true],
    ['text/*;q=0.5, application/json', false],
    ['application/csv', false],
    ['text/csvx', false],
    [`${';a=b'.repeat(4000)}text/csv`, false]
  ] as const) t.equal(prefersCsv(accept), csv, String(accept).slice(0, 60))
})

t.test('format=csv is taken out of the query, and nothing else', async (t) => {
  for (const [query, rest, csv] of [
    ['', '', false],
    ['format=csv', '', true],
    ['a=1&format=csv&b=%20+%zz', 'a=1&b=%20+%zz', true],
    ['format=csv&format=csv&&', '&', true],
    ['%66or%6Dat=c%73v', '', true],
    ['format=array', 'format=array', false],
    ['format=', 'format=', false],
    ['format', 'format', false],
    ['Format=csv', 'Format=csv', false],
    ['format=csv2', 'format=csv2', false],
    ['format=csv;a=1', 'format=csv;a=1', false],
    ['a=format=csv', 'a=format=csv', false]
  ] as const) t.strictSame(takeCsvFormat(query), { query: rest, csv }, query)
})
