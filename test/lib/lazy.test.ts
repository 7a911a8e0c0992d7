import t from 'tap'
import { Lazy } from '../../lib/lazy.ts'

t.test('it is opened once, when it is first asked for', async (t) => {
  let opened = 0
  const lazy = new Lazy(async () => ++opened)
  t.equal(await lazy.peek(), undefined)
  t.strictSame(await Promise.all([lazy.get(), lazy.get(), lazy.peek()]), [1, 1, 1])
  t.equal(await lazy.get(), 1)
})

t.test('a failed opening is retried, and leaves nothing to close', async (t) => {
  let tries = 0
  const lazy = new Lazy(async () => {
    if (++tries === 1) throw new Error('too many open files')
    return tries
  })
  const first = lazy.get()
  t.equal(await lazy.peek(), undefined)
  await t.rejects(first, { message: 'too many open files' })
  t.equal(await lazy.get(), 2)
})
