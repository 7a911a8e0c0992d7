import { type StateRecord, changeState } from '../state.ts'
import type { Backend } from './backend.ts'
import { readState } from './state.ts'

export function createStateRecord (backend: Backend): StateRecord {
  return {
    // Every transaction reads the state.
    delay: 0,
    async read () {
      return backend.read(readState)
    },
    async change ({ state, revision }, change) {
      const next = changeState(state, change)
      const written = await backend.write({ kind: 'state', doc: next.doc, revision, quiet: true }, null)
      return written === 1 ? { state: next.state, revision: revision + 1 } : null
    }
  }
}
