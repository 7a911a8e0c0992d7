import t from 'tap'
import { toCsv } from '../../../lib/lists/csv.ts'

type Row = Record<string, unknown>

async function * batches (...lists: Row[][]): AsyncGenerator<Row[]> {
  yield * lists
}

async function write (escapeFormulae: boolean, ...lists: Row[][]): Promise<string[]> {
  const parts = []
  for await (const part of toCsv(batches(...lists), { escapeFormulae })) parts.push(part.toString())
  return parts
}

const HEADER = '\ufeffclientId,createdAt,modifiedAt,clientSecret,redirectUris,scopes,userId,name,image'

/** A name as it is written. */
async function cell (name: unknown, escapeFormulae = true): Promise<string> {
  const text = (await write(escapeFormulae, [{ clientId: 'c', name }])).join('')
  return text.slice(`${HEADER}\nc,,,,,,,`.length, -',\n'.length)
}

t.test('one buffer per batch, the first with the header, and the last newline at the end', async (t) => {
  t.strictSame(await write(true), [`${HEADER}\n`])
  t.strictSame(await write(true, [], []), [`${HEADER}\n`])
  t.strictSame(await write(true, [{ clientId: 'a' }, { clientId: 'b' }], [], [{ clientId: 'c' }]), [`${HEADER}\na,,,,,,,,\nb,,,,,,,,`, '\nc,,,,,,,,', '\n'])
})

t.test('cells', async (t) => {
  for (const [value, text] of [
    [undefined, ''], [null, ''], ['', ''], [0, '0'], [false, 'false'], [['a', 'b'], '"[""a"",""b""]"'], [[], '[]'], [{ a: 1 }, '"{""a"":1}"'],
    [' a ', ' a '], ['a,b', '"a,b"'], ['a"b', '"a""b"'], ['a\nb', '"a\nb"'], ['a\rb', '"a\rb"'], ['\u{1f600}', '\u{1f600}'], ['a\0b', 'ab']
  ] as const) t.equal(await cell(value), text, JSON.stringify(value))
})

t.test('formulae are escaped, unless the option is off', async (t) => {
  for (const start of ['=', '+', '-', '@', '\t', '\uff1d', '\uff0b', '\uff0d', '\uff20']) {
    t.equal(await cell(`${start}1`), `'${start}1`)
    t.equal(await cell(`${start}1`, false), `${start}1`)
    t.equal(await cell(`\0${start}1`), `'${start}1`, 'a leading NUL does not hide it')
    t.equal(await cell(`a${start}1`), `a${start}1`)
  }
  for (const start of ['\r', '\n']) t.equal(await cell(`${start}=1`), `"'${start}'=1"`)
  t.equal(await cell('=1,"2"'), '"\'=1,""2"""')
})

t.test('characters that show nothing do not hide a formula', async (t) => {
  for (const start of [' ', '\u00a0', '\u2003', '\u3000', '\u2028', '\ufeff', '\u200b', '\u2060', '\u00ad', '\u202e', '\u3164', '\u2800', '\ufe0f', '\v', '\f', '\0', '\x1b', '\u{e0001}', ' \ufeff\v']) {
    t.equal(await cell(`${start}=1`), `'${start.replace('\0', '')}=1`, escape(start))
    t.equal(await cell(`${start}1`), `${start.replace('\0', '')}1`)
  }
})

t.test('nor does the end of a cell where a semicolon separates them', async (t) => {
  for (const [text, escaped] of [
    ['a;=cmd', "a;'=cmd"],
    [';;@a;b;-1', ";;'@a;b;'-1"],
    ['a; \ufeff=1', "a;' \ufeff=1"],
    ['a;"=1', '"a;\'""=1"'],
    ['a\r\n=1', '"a\r\n\'=1"'],
    ['=1;=2', "'=1;'=2"],
    ['https://a.example/;b=1', 'https://a.example/;b=1'],
    ['a=1', 'a=1']
  ] as const) {
    t.equal(await cell(text), escaped)
    t.equal((await cell(text, false)).includes("'"), false)
  }
  const start = performance.now()
  await cell(`${'; '.repeat(20_000)}${' '.repeat(100_000)}`)
  t.ok(performance.now() - start < 5_000, 'in linear time')
})

t.test('the columns are the documented ones, in any order of the fields', async (t) => {
  const columns = HEADER.slice(1).split(',')
  const [text] = await write(true, [Object.fromEntries(columns.map((column) => [column, column]).reverse())])
  t.equal(text?.split('\n')[1], columns.join(','))
})

t.test('every column is escaped', async (t) => {
  const columns = HEADER.slice(1).split(',')
  const [text] = await write(true, [Object.fromEntries(columns.map((column) => [column, '=1']))])
  t.equal(text?.split('\n')[1], columns.map(() => "'=1").join(','))
})

t.test('a record that is not a client is ErrRsc', async (t) => {
  for (const record of [{}, { clientId: 1 }, { clientId: null }, { user_id: 'u' }]) {
    await t.rejects(write(true, [{ clientId: 'a' }], [record]), { code: 'ErrRsc' })
  }
})

t.test('leaving early closes the source', async (t) => {
  let closed = false
  async function * source () {
    try {
      for (;;) yield [{ clientId: 'a' }]
    } finally {
      closed = true
    }
  }
  const parts = toCsv(source(), { escapeFormulae: true })
  t.equal((await parts.next()).done, false)
  t.notOk(closed)
  await parts.return(undefined)
  t.ok(closed)
})
