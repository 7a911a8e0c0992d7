import t from 'tap'
import { SEAL_ID, type Seal, retireFormer } from '../../../lib/crypto/seal.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { forEachEngine } from '../../helpers/stores.ts'

/** The most retired keys that are remembered. */
const MOST = 16

await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
  const seals = store.collection<Seal>('meta')

  t.test('of the retired keys the latest ones are remembered', async (t) => {
    const retired = Array.from({ length: MOST }, (_, number) => `old${number}`)
    const seal: Seal = { id: SEAL_ID, key_id: 'now', former: ['last', 'latest'], announced: [], retired, revision: 3 }
    await seals.put(seal)
    t.equal(await retireFormer(store, { ...seal, revision: 2 }), false, 'not after a start meanwhile')
    t.strictSame(await seals.get(SEAL_ID), seal)
    t.equal(await retireFormer(store, seal), true)
    t.strictSame(await seals.get(SEAL_ID), { ...seal, former: [], retired: [...retired.slice(2), 'last', 'latest'], revision: 4 })
  })
})
