import { MongoClient } from 'mongodb'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { openMongoStore } from '../../../lib/store/mongo.ts'
import { createReadiness } from '../../../plugins/readiness.ts'
import { createMongoDatabase } from '../../helpers/mongo-database.ts'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { startProxyThread } from './mongo/proxy-thread.ts'

t.setTimeout(120_000)

const WRITERS = 6

/** Milliseconds after which a call counts as one that waited. Without an outage known to the store, a call waits nine seconds. */
const WAITED = 4_000

/**
 * Milliseconds from the begin of an outage until calls may no longer wait. A server that refuses connections is missed for a second. For one that
 * accepts them and answers nothing, it takes three checks.
 */
const NOTICED = { refuse: 3_000, freeze: 6_000 }

for (const [mode, noticed] of Object.entries(NOTICED) as ['refuse' | 'freeze', number][]) {
  t.test(`while the server ${mode === 'refuse' ? 'refuses connections' : 'answers nothing'}, calls and readiness fail at once under load, and succeed soon after its return`, { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
    const url = new URL(createMongoDatabase(t, MONGODB_URL!))
    const [target] = new MongoClient(MONGODB_URL!).options.hosts
    const proxy = await startProxyThread({ host: target!.host ?? '127.0.0.1', port: target!.port ?? 27017 })
    t.teardown(proxy.stop)
    url.host = `127.0.0.1:${proxy.port}`
    url.searchParams.set('directConnection', 'true')
    const store = await openMongoStore(url.href, { collections: [{ name: 'things', keys: {} }], now: Date.now })
    t.teardown(() => store.close())
    const check = createReadiness({ store, closing: new AbortController().signal })
    const things = store.collection('things')

    const calls: { began: number, took: number, failed: boolean }[] = []
    const stop = new AbortController()
    const answered = async (call: () => Promise<unknown>) => {
      const began = performance.now()
      const failed = await call().then(() => false, () => true)
      calls.push({ began, took: performance.now() - began, failed })
      // A refused caller would otherwise turn without a pause.
      if (failed) await sleep(20)
    }
    const load = Array.from({ length: WRITERS }, async (_, writer) => {
      for (let number = 0; !stop.signal.aborted; number++) await answered(() => things.insert({ id: `${writer} ${number}` }))
    })
    await check()
    await sleep(1_000)

    await proxy.set(mode)
    if (mode === 'refuse') await proxy.cut({ reset: true })
    const cut = performance.now()
    const probes: number[] = []
    while (performance.now() - cut < noticed + 6_000) {
      const began = performance.now()
      const ready = await check().then(() => true, () => false)
      probes.push(performance.now() - began)
      if (began - cut > 2_000) t.notOk(ready)
      await sleep(300)
    }
    const during = calls.filter(({ began, took }) => began - cut > noticed && took > WAITED)
    t.ok(calls.some(({ began }) => began - cut > noticed), 'there were calls')
    t.strictSame(during, [], 'no call waits')
    t.ok(Math.max(...probes) < WAITED, `readiness answered in ${Math.round(Math.max(...probes))} ms at most`)

    await proxy.set('pass')
    const back = performance.now()
    while (await check().then(() => false, () => true)) await sleep(50)
    t.comment(`ready ${Math.round(performance.now() - back)} ms after the return; the slowest probe of the outage took ${Math.round(Math.max(...probes))} ms`)
    t.ok(performance.now() - back < 10_000)
    await things.insert({ id: 'after' })
    stop.abort()
    await Promise.all(load)
  })
}
