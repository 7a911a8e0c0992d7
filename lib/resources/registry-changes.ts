import type { Base } from '../base.ts'
import { changeRecord } from '../change-record.ts'
import { IdentityError } from '../errors.ts'
import type { Happening } from '../events/types.ts'
import { retryWrite } from '../retry.ts'
import { DuplicateKeyError } from '../store/port.ts'
import { listMoved } from './declare.ts'
import { isSameEntry } from './entries.ts'
import { EMPTY_REGISTRY, REGISTRY_ID, type Registry, findDeclarer } from './registry.ts'
import { createStrip } from './strip.ts'

/** The events of a change of the resources. */
function listHappenings ({ resources: previous }: Registry, { resources: next }: Registry): Happening[] {
  const created = Object.keys(next).filter((id) => !Object.hasOwn(previous, id))
  const deleted = Object.keys(previous).filter((id) => !Object.hasOwn(next, id))
  const updated = Object.entries(next).filter(([id, entry]) => {
    const before = Object.hasOwn(previous, id) ? previous[id] : undefined
    return before !== undefined && (before.modified_at !== entry.modified_at || !isSameEntry(before, entry))
  })
  return [
    ...created.map((id) => ({ type: 'resource.created', id }) as const),
    ...updated.map(([id]) => ({ type: 'resource.updated', id }) as const),
    ...deleted.map((id) => ({ type: 'resource.deleted', id }) as const)
  ]
}

const notFound = () => new IdentityError('ErrNotFound', 'resourceId: no such resource')

/** Changes the registry, and removes scopes from clients that they may not have any more. */
export function createRegistryChanges ({ store, now, recorder, report }: Base) {
  const registries = store.collection<Registry>('resources')
  const strip = createStrip({ store, now, recorder })

  /** Creates the registry if it is missing. The look-up of every token refers to it, and is cached only if it exists. */
  async function ensure (): Promise<void> {
    if (await registries.get(REGISTRY_ID) !== null) return
    try {
      await registries.insert(EMPTY_REGISTRY)
    } catch (error) {
      if (!(error instanceof DuplicateKeyError)) throw error
    }
  }

  /** Removes scopes from clients after a change. A failure is reported to the operator, not to the caller, whose change took effect. */
  async function cleanUp (names: string[]): Promise<number> {
    try {
      return await strip(names)
    } catch (cause) {
      report('resources')(new Error('scopes were not removed from clients, where they have no effect any more', { cause }))
      return 0
    }
  }

  /**
   * Changes the registry. Nothing is written if `decide` returns the same registry. Resolves to the number of clients that lost a scope.
   *
   * Clients may still have a reserved name if its removal was interrupted, and the resource that had the name can declare it again. So
   * before a reserved name is declared, all clients are read, and the write requires the registry of before that.
   */
  async function change (decide: (registry: Registry) => Registry): Promise<number> {
    let count = 0
    let read: number | undefined
    let moved: string[] = []
    await ensure()
    await retryWrite('the resources', async () => {
      let reserved: string[] = []
      const { revision } = await changeRecord({ collection: registries, recorder, what: 'the resources', notFound }, REGISTRY_ID, (registry) => {
        const next = decide(registry)
        moved = next === registry ? [] : listMoved(registry, next)
        reserved = registry.revision === read ? [] : moved.filter((scope) => findDeclarer(registry, scope) === null)
        if (next === registry || reserved.length > 0) return null
        return { set: { resources: next.resources, names: next.names }, happened: listHappenings(registry, next) }
      })
      if (reserved.length === 0) return true
      count += await strip(reserved)
      read = revision
      return null
    })
    return count + await cleanUp(moved)
  }

  return { ensure, change }
}
