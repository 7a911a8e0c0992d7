import t from 'tap'
import { createLimits } from '../../../lib/documents/limits.ts'
import { createCounter } from '../../../lib/throttling/counter.ts'

const AGENT = new URL('https://agent.example/client.json')
const busy = { name: 'DocumentError', rule: 'busy', retryAfter: 5 }

function open () {
  let time = 0
  const limits = createLimits(createCounter(() => time))
  return { limits, advance: (milliseconds: number) => { time += milliseconds } }
}

t.test('ten first fetches a minute for an address, which is a /64 of IPv6, and thirty of a host', async (t) => {
  const { limits, advance } = open()
  const fetch = async (address: string, url = AGENT) => await limits.first(url, address, async () => 'done')
  for (let count = 0; count < 10; count++) await fetch(`2001:db8:1:2::${count}`)
  await t.rejects(fetch('2001:db8:1:2:ffff::1'), { name: 'DocumentError', rule: 'rate', retryAfter: 60 })
  for (let count = 0; count < 20; count++) t.equal(await fetch(`192.0.2.${count}`), 'done')
  await t.rejects(fetch('192.0.2.99'), { name: 'DocumentError', rule: 'rate', message: /from one host/ })
  t.equal(await fetch('192.0.2.99', new URL('https://other.example/a')), 'done', 'other hosts go on')
  advance(60_000)
  t.equal(await fetch('2001:db8:1:2::1'), 'done')
})

t.test('eight at once, four of one host, 32 wait, and more are refused; later fetches have slots of their own', async (t) => {
  const { limits } = open()
  const { promise, resolve } = Promise.withResolvers<void>()
  let running = 0
  let most = 0
  const hang = async () => {
    most = Math.max(most, ++running)
    await promise
    running--
  }
  const all = Array.from({ length: 40 }, (_, index) => limits.first(new URL(`https://host-${index % 10}.example/a`), `192.0.2.${index}`, hang))
  await new Promise(setImmediate)
  t.equal(running, 8)
  await t.rejects(limits.first(AGENT, '198.51.100.1', hang), busy)
  t.equal(await limits.again(AGENT, async () => 'read again'), 'read again')
  const later = Array.from({ length: 40 }, () => limits.again(AGENT, hang))
  await new Promise(setImmediate)
  t.equal(running, 12, 'four of one host')
  await t.rejects(limits.again(AGENT, hang), busy)
  resolve()
  await Promise.all([...all, ...later])
  t.equal(await limits.first(AGENT, '198.51.100.2', async () => 'free again'), 'free again')
  t.ok(most >= 12)
})
