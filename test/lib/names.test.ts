import t from 'tap'
import { checkName } from '../../lib/names.ts'

t.test('names that are accepted', async (t) => {
  for (const name of [
    '', 'Orders', "Ann's shop & café (2)", 'Ré\u0301sume\u0301', 'Магазин', '注文\u3000アプリ', 'متجر', 'חנות',
    'می\u200cخواهم', 'ක්\u200dෂ', 'र्\u200dय', '\u{1F469}\u200d\u{1F4BB} Desk', '\u2764\ufe0f', '\u{1F3F3}\ufe0f\u200d\u{1F308}', '\u{1F44B}\u{1F3FD}', '\u{1F1E9}\u{1F1EA}'
  ]) t.equal(checkName('name', name), name, JSON.stringify(name))
})

t.test('a name has nothing that reorders, breaks or hides its text', async (t) => {
  for (const [kind, characters] of [
    ['control character', '\0\t\n\r\u001b\u007f\u0085\u009f'],
    ['line separator', '\u2028\u2029'],
    ['bidirectional control', '\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069'],
    ['invisible character', '\u00ad\u034f\u115f\u1160\u17b4\u180e\u200b\u200c\u200d\u2060\u2064\u206a\u2800\u3164\ufe0f\ufeff\uffa0\ufff9\u{1d173}\u{e0001}\u{e0041}\u{e0100}']
  ] as const) {
    for (const character of characters) {
      const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')
      for (const name of [character, `Intra${character}net`, `${character}Intranet`, `Intranet${character}`]) {
        t.throws(() => checkName('name', name), { code: 'ErrParam', message: `name: must not contain the ${kind} U+${code}` }, `U+${code} in ${name.length} code units`)
      }
    }
  }
  for (const name of ['می\u200c', 'می\u200c\u200cخ', '\u{1F469}\u200d', '\u{1F469}\u200dA', '1\ufe0f', '\u2764\ufe0f\ufe0f']) {
    t.throws(() => checkName('name', name), { code: 'ErrParam' }, JSON.stringify(name))
  }
})

t.test('an error names the field', async (t) => {
  t.throws(() => checkName('data.name', 'half a pair \ud800'), { code: 'ErrParam', message: 'data.name: must be well-formed Unicode' })
  t.throws(() => checkName('scopes.read', 'a\u202eb'), { code: 'ErrParam', message: 'scopes.read: must not contain the bidirectional control U+202E' })
})
