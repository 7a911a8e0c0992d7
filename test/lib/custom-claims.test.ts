import t from 'tap'
import { type CustomClaims, RESOURCE_PLACES, checkClaims, readClaims } from '../../lib/custom-claims.ts'
import { ALL_CLAIMS } from '../helpers/reserved-claims.ts'
import { CLAIM_LIMITS } from '../../schemas/claims.ts'

const tenant: CustomClaims[string] = { from: 'attributes.tenant', in: ['introspection'] }
const declare = (claims: { [name: string]: unknown }) => () => checkClaims(claims as CustomClaims)
const refuse = (field: string) => ({ code: 'ErrParam', message: new RegExp(`^${field.replaceAll('.', '\\.')}: `) })

t.test('claims are sorted, and their places have no repeats', async (t) => {
  const claims = checkClaims({ tenant: { from: 'attributes.tenant', in: ['jwt', 'id_token', 'jwt'] }, 'https://a.example/plan': { from: 'attributes.a.b-c.d_e', in: ['userinfo'] } })
  t.strictSame(JSON.stringify(claims), JSON.stringify({
    'https://a.example/plan': { from: 'attributes.a.b-c.d_e', in: ['userinfo'] }, tenant: { from: 'attributes.tenant', in: ['id_token', 'jwt'] }
  }))
  t.strictSame(checkClaims({}), {})
})

t.test('names that others use are refused, in any case', async (t) => {
  for (const name of ALL_CLAIMS) {
    t.throws(declare({ [name]: tenant }), refuse(name.startsWith('_') ? 'claims' : `claims.${name}`), name)
    if (!name.startsWith('_')) t.throws(declare({ [name.toUpperCase()]: tenant }), refuse(`claims.${name.toUpperCase()}`), name.toUpperCase())
  }
})

t.test('names, sources and places have their forms and bounds', async (t) => {
  const longest = 'n'.repeat(CLAIM_LIMITS.name)
  t.strictSame(Object.keys(checkClaims({ [longest]: tenant })), [longest])
  for (const name of [`${longest}n`, '', '__proto__', '_x', '1a', 'a b', 'a\n', 'ä', 'a"b', 'a{']) {
    t.throws(declare(JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(tenant)}}`)), refuse('claims'), name)
  }
  const deepest = `attributes${'.a'.repeat(CLAIM_LIMITS.depth)}`
  t.strictSame(checkClaims({ a: { ...tenant, from: deepest } }).a?.from, deepest)
  for (const from of [
    `${deepest}.a`, 'attributes', 'attributes.', 'attributes..a', 'info.tenant', 'roles.admin', 'email', 'password', 'tenant', 'attributesx.a', 'x.attributes.a', '$.attributes.a', 'attributes.a\n',
    'attributes[0]', 'attributes.a b', `attributes.${'a'.repeat(CLAIM_LIMITS.from)}`, ''
  ]) t.throws(declare({ a: { ...tenant, from } }), refuse('claims.a.from'), from)
  for (const places of [[], ['tokeninfo'], ['introspection', 'access_token']]) t.throws(declare({ a: { ...tenant, in: places } }), refuse('claims.a.in'))
  for (const place of ['id_token', 'userinfo'] as const) {
    t.throws(() => checkClaims({ a: { ...tenant, in: [place] } }, RESOURCE_PLACES), refuse('claims.a.in'), `${place} of a resource`)
  }
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, tenant]))
  t.equal(Object.keys(checkClaims(many(CLAIM_LIMITS.claims))).length, CLAIM_LIMITS.claims)
  t.throws(declare(many(CLAIM_LIMITS.claims + 1)), refuse('claims'))
})

t.test('only texts, numbers, booleans and arrays of them are values, within their bounds', async (t) => {
  const read = (value: unknown) => readClaims('jwt', [{ a: { from: 'attributes.a', in: ['jwt'] } }], { attributes: { a: value as never } })
  const { text, items } = CLAIM_LIMITS
  for (const value of ['acme', '', '\u{1F600}'.repeat(text), 7, -0.5, 0, true, false, [], ['a', 1, false], Array.from({ length: items }, () => 'a')]) {
    t.strictSame(read(value), { a: value }, JSON.stringify(value).slice(0, 40))
  }
  for (const value of [
    null, {}, { b: 1 }, [['a']], [null], [{}], 'a'.repeat(text + 1), ['a'.repeat(text + 1)], Array.from({ length: items + 1 }, () => 'a'), Infinity, Number.NaN, undefined
  ]) t.strictSame(read(value), {}, `left out: ${JSON.stringify(value)?.slice(0, 40)}`)
})

t.test('only own keys of objects are followed', async (t) => {
  const read = (from: string, attributes: object) => readClaims('jwt', [{ a: { from, in: ['jwt'] } }], { attributes: attributes as never })
  t.strictSame(read('attributes.plan.name', { plan: { name: 'gold' } }), { a: 'gold' })
  for (const from of ['attributes.constructor.name', 'attributes.toString.name', 'attributes.__proto__.x', 'attributes.list.0', 'attributes.list.length', 'attributes.text.length', 'attributes.none.x']) {
    t.strictSame(read(from, { list: ['x'], text: 'x', none: null }), {}, from)
  }
  t.strictSame(readClaims('jwt', [{ a: tenant }], {}), {}, 'a user without attributes')
})

t.test('a place has the claims that are declared for it, a later declaration wins, and all together are bounded', async (t) => {
  const attributes = { one: 'one', two: 'two' }
  const of = (from: string, ...places: CustomClaims[string]['in']) => ({ from: `attributes.${from}`, in: places })
  const client = { a: of('one', 'introspection', 'jwt'), b: of('one', 'id_token') }
  const resource = { a: of('two', 'introspection'), c: of('two', 'jwt') }
  t.strictSame(readClaims('introspection', [client, resource], { attributes }), { a: 'two' })
  t.strictSame(readClaims('jwt', [client, resource], { attributes }), { a: 'one', c: 'two' })
  t.strictSame(readClaims('id_token', [client, resource], { attributes }), { b: 'one' })
  t.strictSame(readClaims('introspection', [client, { a: of('none', 'introspection') }], { attributes }), {}, 'also where it has no value')
  t.strictSame(readClaims('jwt', [undefined, undefined], { attributes }), {})
  t.strictSame(readClaims('jwt', [JSON.parse('{"sub":{"from":"attributes.one","in":["jwt"]}}')], { attributes }), {}, 'a name that was reserved after it was declared')

  const full = Object.fromEntries(Array.from({ length: CLAIM_LIMITS.claims }, (_, index) => [`n${String(index).padStart(2, '0')}`, of('long', 'jwt')]))
  const claims = readClaims('jwt', [{ ...full, z: of('one', 'jwt') }], { attributes: { ...attributes, long: 'x'.repeat(CLAIM_LIMITS.text) } })
  t.ok(Buffer.byteLength(JSON.stringify(claims)) <= CLAIM_LIMITS.bytes)
  const names = Object.keys(claims)
  t.ok(names.length > 2 && names.length < CLAIM_LIMITS.claims)
  t.strictSame(names, [...Object.keys(full).slice(0, names.length - 1), 'z'], 'in the order of their names, and what still fits')
})
