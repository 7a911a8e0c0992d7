import { readFileSync } from 'node:fs'
import t from 'tap'
import { isCommon } from '../../../lib/users/common-passwords.ts'
import { LONGEST_COMMON, createPasswordRules } from '../../../lib/users/password-rules.ts'

t.test('no common password is longer than those that are looked up', async (t) => {
  const source = readFileSync(new URL('../../../lib/users/common-passwords.ts', import.meta.url), 'utf8')
  const words = source.slice(source.indexOf('const WORDS')).split(/\s+/).filter(isCommon)
  t.ok(words.length > 15_000)
  const longest = words.reduce((one, other) => other.length > one.length ? other : one)
  t.equal(longest.length, LONGEST_COMMON)
  const check = createPasswordRules({ min: 8 })
  await t.rejects(check(longest.toUpperCase(), { account: 'ann' }), { code: 'ErrParam', reason: 'common' })
  t.equal(await check(`${longest}1`, { account: 'ann' }), `${longest}1`)
})
