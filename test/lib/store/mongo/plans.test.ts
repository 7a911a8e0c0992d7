import t from 'tap'
import { findScans, findSorts } from './plans.ts'

// Shortened plans of real servers. If the helper missed a scan, the tests that use it would prove nothing.

t.test("mongod's plans", async (t) => {
  const indexed = { stage: 'FETCH', inputStage: { stage: 'IXSCAN', indexName: 'name_1__id_1' } }
  const scanned = { stage: 'SORT', inputStage: { stage: 'COLLSCAN', direction: 'forward' } }
  t.strictSame(findScans({ queryPlanner: { winningPlan: indexed, rejectedPlans: [scanned] } }), [])
  t.strictSame(findScans({ queryPlanner: { winningPlan: scanned, rejectedPlans: [indexed] } }), ['COLLSCAN'])
  t.strictSame(findScans({ queryPlanner: { winningPlan: { queryPlan: scanned, slotBasedPlan: {} } } }), ['COLLSCAN'])
  t.strictSame(findScans({ stages: [{ $cursor: { queryPlanner: { winningPlan: scanned } } }, { $lookup: {} }] }), ['COLLSCAN'])
  t.strictSame(findSorts({ queryPlanner: { winningPlan: scanned } }), ['SORT'])
  t.strictSame(findSorts({ queryPlanner: { winningPlan: indexed } }), [])
})

t.test("FerretDB's plans", async (t) => {
  const step = (name: string, condition: string, node = 'Index Scan') => (
    { queryPlanner: { Plan: { 'Node Type': 'Custom Scan', Plans: [{ 'Node Type': node, 'Index Name': name, 'Index Cond': condition }] } } }
  )
  const collection = "(shard_key_value = '21'::bigint)"
  t.strictSame(findScans(step('name_1__id_1', "(document @= 'BSONHEX')")), [])
  t.strictSame(findScans(step('_id_', `(${collection} AND (object_id = 'BSONHEX'))`)), [])
  t.strictSame(findScans(step('_id_', collection, 'Bitmap Index Scan')), ['Index Scan of all ids'])
  t.strictSame(findScans({ queryPlanner: { Plan: { 'Node Type': 'Seq Scan' } } }), ['Seq Scan'])
})
