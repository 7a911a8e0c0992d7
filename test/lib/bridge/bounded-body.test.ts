import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { boundBody } from '../../../lib/bridge/bounded-body.ts'

t.test('a body is bounded, and its source left alive', async (t) => {
  const source = new PassThrough()
  const bounded = boundBody(source, 4)
  source.write('abcd')
  source.write('e')
  const [error] = await once(bounded, 'error')
  t.match(error, { code: 'ErrParam', statusCode: 413 })
  t.equal(source.destroyed, false)
})

t.test('a body ends with its source, however that ends', async (t) => {
  const broken = new PassThrough()
  const first = boundBody(broken, 4)
  broken.destroy(new Error('reset'))
  await t.rejects(first.toArray(), { message: 'reset' })
  const left = new PassThrough()
  const second = boundBody(left, 4)
  left.destroy()
  await t.rejects(second.toArray())
  const whole = new PassThrough()
  const third = boundBody(whole, 4)
  whole.end('abcd')
  t.equal(Buffer.concat(await third.toArray()).toString(), 'abcd')
})
