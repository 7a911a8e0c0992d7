import { setTimeout } from 'node:timers/promises'
import { DuplicateKeyError } from '../../../../lib/store/port.ts'
import type { Cases } from './suite.ts'

const RACERS = Array.from({ length: 50 }, (_, index) => index)

export const races: Cases = {
  'of documents that take the same item at once, one gets it': async (t, { things }) => {
    for (let id = 0; id < 20; id++) await things.insert({ id: String(id), aliases: [`own ${id}`] })
    const results = await Promise.allSettled(Array.from({ length: 20 }, (_, number) => things.update(String(number), { set: { aliases: ['wanted', `own ${number}`] } })))
    t.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
    t.ok(results.every((result) => result.status === 'fulfilled' || result.reason instanceof DuplicateKeyError))
    const holder = await things.getBy('aliases', 'wanted')
    t.strictSame(holder?.aliases, ['wanted', `own ${holder?.id}`])
  },

  'of many inserts of one id one wins': async (t, { things }) => {
    const outcomes = await Promise.allSettled(RACERS.map((racer) => things.insert({ id: 'a', racer })))
    const losers = outcomes.filter((outcome) => outcome.status === 'rejected')
    t.equal(losers.length, RACERS.length - 1)
    t.ok(losers.every(({ reason }) => reason instanceof DuplicateKeyError && reason.field === 'id'))
    t.equal((await things.get('a'))?.racer, outcomes.findIndex(({ status }) => status === 'fulfilled'), 'the one that was told so')
  },

  'of many inserts of one unique value one wins, and the neighbours of the losers are kept': async (t, { things }) => {
    const outcomes = await Promise.allSettled(RACERS.flatMap((racer) => [
      things.insert({ id: `racer ${racer}`, name: 'n' }),
      things.insert({ id: `neighbour ${racer}` })
    ]))
    const losers = outcomes.filter((outcome) => outcome.status === 'rejected')
    t.equal(losers.length, RACERS.length - 1)
    t.ok(losers.every(({ reason }) => reason instanceof DuplicateKeyError && reason.field === 'name'))
    t.equal(await things.count(), RACERS.length + 1)
  },

  'of many conditional updates one wins': async (t, { things }) => {
    await things.insert({ id: 'a', rank: 0 })
    const outcomes = await Promise.all(RACERS.map((racer) => things.update('a', { set: { racer }, increment: { rank: 1 } }, { equal: { rank: 0 } })))
    const winners = outcomes.filter((outcome) => outcome !== null)
    t.equal(winners.length, 1)
    t.strictSame(await things.get('a'), winners[0])
  },

  'a delete beside updates of the document removes it': async (t, { things }) => {
    for (let round = 0; round < 60; round++) {
      await things.put({ id: 'a', name: 'n' })
      const updates = RACERS.slice(0, 4).map(() => things.update('a', { set: { note: 'x'.repeat(round) } }))
      await setTimeout(round % 4)
      if (!await things.delete('a')) t.fail(`round ${round}: not found`)
      await Promise.all(updates)
      if (await things.get('a') !== null) t.fail(`round ${round}: still there`)
    }
    t.equal(await things.count(), 0)
  },

  'of many deletes one removes': async (t, { things }) => {
    await things.insert({ id: 'a' })
    const outcomes = await Promise.all(RACERS.map(() => things.delete('a')))
    t.equal(outcomes.filter(Boolean).length, 1)
  },

  'no increment is lost': async (t, { things }) => {
    await things.insert({ id: 'a' })
    const outcomes = await Promise.all(RACERS.map(() => things.update('a', { increment: { rank: 1, other: 2 } })))
    t.strictSame(await things.get('a'), { id: 'a', rank: RACERS.length, other: 2 * RACERS.length })
    t.equal(new Set(outcomes.map((outcome) => outcome?.rank)).size, RACERS.length, 'each saw its own')
  },

  'updates of different fields all take': async (t, { things }) => {
    await things.insert({ id: 'a' })
    await Promise.all(RACERS.map((racer) => things.update('a', { set: { [`field ${racer}`]: racer } })))
    t.strictSame(await things.get('a'), { id: 'a', ...Object.fromEntries(RACERS.map((racer) => [`field ${racer}`, racer])) })
  },

  'a write that has resolved is seen by every read after it': async (t, { things }) => {
    await Promise.all(RACERS.map(async (racer) => {
      const id = `r${racer}`
      await things.insert({ id, owner: id, name: id })
      t.equal((await things.get(id))?.id, id)
      t.equal((await things.getBy('name', id))?.id, id)
      t.equal((await things.getLinked(id, {}))?.document.id, id)
      t.equal(await things.count({ equal: { owner: id } }), 1)
      const batches = []
      for await (const batch of things.stream({ filter: { equal: { owner: id } } })) batches.push(batch)
      t.match(batches, [[{ id }]])
    }))
  }
}
