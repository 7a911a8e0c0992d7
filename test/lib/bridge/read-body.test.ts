import { PassThrough } from 'node:stream'
import t from 'tap'
import { readBody } from '../../../lib/bridge/read-body.ts'

const LIMITS = { bodyLimit: 4, bodyTimeout: 60_000 }

t.test('a body up to the limit is read whole', async (t) => {
  const source = new PassThrough()
  source.write('ab')
  source.end('cd')
  t.equal((await readBody(source, NaN, LIMITS)).toString(), 'abcd')
})

t.test('a body past the limit is refused, and its source left alive', async (t) => {
  const source = new PassThrough()
  source.write('abcd')
  source.write('e')
  await t.rejects(readBody(source, NaN, LIMITS), { code: 'ErrParam', statusCode: 413 })
  t.equal(source.destroyed, false)
  const announced = new PassThrough()
  await t.rejects(readBody(announced, 5, LIMITS), { code: 'ErrParam', statusCode: 413 }, 'a length past the limit is not read')
})

t.test('a late body is refused, and its source left alive', async (t) => {
  const source = new PassThrough()
  await t.rejects(readBody(source, NaN, { ...LIMITS, bodyTimeout: 1 }), { code: 'ErrParam', statusCode: 408 })
  t.equal(source.destroyed, false)
})

t.test('a body whose source breaks is incomplete', async (t) => {
  for (const error of [new Error('reset'), undefined]) {
    const source = new PassThrough()
    source.write('ab')
    const read = readBody(source, NaN, LIMITS)
    source.destroy(error)
    await t.rejects(read, { code: 'ErrParam', statusCode: 400, message: 'body: is incomplete' })
  }
})
