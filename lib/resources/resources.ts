import type { CreateResource, NewResource, PatchResource, Resource, ResourceListQuery } from '../../schemas/resource.ts'
import { checkFields } from '../checks.ts'
import { changeRecord } from '../change-record.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Happening } from '../events/types.ts'
import { generateId } from '../ids.ts'
import { mapBatches, type Page } from '../lists/cursor.ts'
import { pageDocuments } from '../lists/documents.ts'
import { parseSort } from '../lists/sort.ts'
import { retryWrite } from '../retry.ts'
import { DuplicateKeyError, type Store } from '../store/port.ts'
import { CHECKS, checkSelfService } from './checks.ts'
import { dropResource, listMoved, putResource } from './declare.ts'
import { EMPTY_REGISTRY, REGISTRY_ID, type Registry, type ResourceEntry, findByUri, findDeclarer, readRegistry } from './registry.ts'
import { showResource } from './show-resource.ts'
import { createStrip } from './strip.ts'

const SORT_KEYS = { created: 'created_at', modified: 'modified_at', name: 'name' }

interface ResourceServices {
  store: Store
  now: Clock
  /** The URI of the service's own API, if known. */
  api?: string | undefined
  recorder: Recorder
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
}

function notFound (): IdentityError {
  return new IdentityError('ErrNotFound', 'resourceId: no such resource')
}

function requireEntry ({ resources }: Registry, resourceId: string): ResourceEntry {
  const entry = Object.hasOwn(resources, resourceId) ? resources[resourceId] : undefined
  if (entry === undefined) throw notFound()
  return entry
}

/** The entry, unless an option of the host declares it. */
function requireChangeable (registry: Registry, resourceId: string): ResourceEntry {
  const entry = requireEntry(registry, resourceId)
  if (entry.fixed === true) throw permError('resourceId', 'the resource is declared by the app, and is changed only there')
  return entry
}

/** The fields that are compared to see whether a declaration changed. */
function toText ({ created_at, modified_at, ...fields }: ResourceEntry): string {
  return JSON.stringify(Object.entries(fields).sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** The events of a change of the resources. */
function listHappenings ({ resources: former }: Registry, { resources: next }: Registry): Happening[] {
  const kept = Object.keys(next).filter((id) => Object.hasOwn(former, id))
  return [
    ...Object.keys(next).filter((id) => !kept.includes(id)).map((id) => ({ type: 'resource.created', id }) as const),
    ...kept.filter((id) => former[id]!.modified_at !== next[id]!.modified_at || toText(former[id]!) !== toText(next[id]!)).map((id) => ({ type: 'resource.updated', id }) as const),
    ...Object.keys(former).filter((id) => !kept.includes(id)).map((id) => ({ type: 'resource.deleted', id }) as const)
  ]
}

/**
 * Declared resources. Each is the audience of its tokens and defines its scopes. All of them are one document, which is changed by
 * conditional writes. Of two concurrent changes, the second is based on the result of the first.
 */
export function createResources ({ store, now, api, recorder, onError }: ResourceServices) {
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
      onError(new Error('scopes were not removed from clients, where they have no effect any more', { cause }))
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
        return { set: { resources: next.resources as never, names: next.names }, happened: listHappenings(registry, next) }
      })
      if (reserved.length === 0) return true
      count += await strip(reserved)
      read = revision
      return null
    })
    return count + await cleanUp(moved)
  }

  function checkIsNotApi (uri: string): void {
    if (api !== undefined && new URL(uri).href.replace(/\/$/, '') === new URL(api).href.replace(/\/$/, '')) {
      throw paramError('id', "must not be the URI of this service's own API")
    }
  }

  /** Creates an entry, or the new content of an existing one. */
  function toEntry (data: NewResource, time: string, before?: ResourceEntry): ResourceEntry {
    const { id: uri, selfService: self_service = [], accessTtl: access_ttl, ...fields } = checkFields(data, CHECKS)
    checkIsNotApi(uri)
    const entry = { uri, ...fields, ...(access_ttl !== undefined && { access_ttl }), self_service, created_at: before?.created_at ?? time, modified_at: time }
    checkSelfService(entry)
    return entry
  }

  function toPatched (entry: ResourceEntry, { roles, accessTtl, ...data }: PatchResource['data']): ResourceEntry {
    const { selfService, accessTtl: access_ttl, ...fields } = checkFields({ ...data, ...(roles !== null && { roles }), ...(accessTtl !== null && { accessTtl }) }, CHECKS)
    const { roles: held, access_ttl: former, ...rest } = { ...entry, ...fields }
    const isKept = (scope: string) => Object.hasOwn(rest.scopes, scope)
    const kept = entry.self_service.filter(isKept)
    const documents = fields.documents ?? entry.documents?.filter(isKept)
    const lifetime = accessTtl === null ? undefined : access_ttl ?? former
    const patched = {
      ...rest,
      ...(documents !== undefined && { documents }),
      ...(roles !== null && held !== undefined && { roles: held }),
      ...(lifetime !== undefined && { access_ttl: lifetime }),
      self_service: selfService ?? kept,
      modified_at: toTimestamp(now())
    }
    checkSelfService(patched)
    return patched
  }

  /** Declares one resource of the option. `index` is its position there. */
  function declare (registry: Registry, data: NewResource, index: number): Registry {
    const time = now()
    try {
      const [resourceId, before] = findByUri(registry, data.id) ?? [generateId(time)]
      const entry = { ...toEntry(data, toTimestamp(time), before), fixed: true }
      return before !== undefined && toText(before) === toText(entry) ? registry : putResource(registry, resourceId, entry)
    } catch (error) {
      if (!(error instanceof IdentityError)) throw error
      throw new Error(`option resources[${index}].${error.message}`, { cause: error })
    }
  }

  async function readPage (query: ResourceListQuery): Promise<Page<Resource>> {
    const sort = parseSort(query.sort, SORT_KEYS, 'name:asc')
    const { resources } = await readRegistry(store)
    const documents = Object.entries(resources).map(([id, entry]) => ({ id, ...entry }))
    const { batches, ...page } = pageDocuments(documents, sort, query)
    return { ...page, batches: mapBatches(batches, ({ id, ...entry }) => showResource(id, entry)) }
  }

  return {
    ensure,

    /**
     * Declares a resource. Clients that already had one of its scopes lose it.
     * @throws ErrParam, RESOURCE_EXIST, ErrBusy
     */
    async create ({ data }: CreateResource): Promise<{ resourceId: string, strippedClients: number }> {
      const time = now()
      const resourceId = generateId(time)
      const entry = toEntry(data, toTimestamp(time))
      return { resourceId, strippedClients: await change((registry) => putResource(registry, resourceId, entry)) }
    },

    /** The resource; throws ErrNotFound. */
    async require (resourceId: string): Promise<Resource> {
      return showResource(resourceId, requireEntry(await readRegistry(store), resourceId))
    },

    /** The resource with this URI, or null. */
    async getByUri (uri: string): Promise<Resource | null> {
      const found = findByUri(await readRegistry(store), uri)
      return found === undefined ? null : showResource(...found)
    },

    /**
     * Changes a resource. Clients lose each scope that the change adds to the resource or removes from it.
     * @throws ErrNotFound, ErrPerm, ErrParam, RESOURCE_EXIST, ErrBusy
     */
    async patch (resourceId: string, { data }: PatchResource): Promise<{ strippedClients: number }> {
      if (Object.keys(data).length === 0) throw new IdentityError('ErrParam', 'body: must contain a change')
      const strippedClients = await change((registry) =>
        putResource(registry, resourceId, toPatched(requireChangeable(registry, resourceId), data)))
      return { strippedClients }
    },

    /**
     * Removes a resource. Its tokens become invalid, clients lose its scopes, and the scopes stay reserved.
     * @throws ErrNotFound, ErrPerm, ErrBusy
     */
    async remove (resourceId: string): Promise<{ strippedClients: number }> {
      const strippedClients = await change((registry) => {
        requireChangeable(registry, resourceId)
        return dropResource(registry, resourceId)
      })
      return { strippedClients }
    },

    /**
     * Declares the resources of the option `resources`, by their URIs. The API cannot change a resource while the option contains
     * it. Nothing is written when nothing has changed.
     * @throws Error that names the option
     */
    async declareFixed (list: readonly NewResource[]): Promise<void> {
      const twice = list.findIndex(({ id }, index) => list.slice(0, index).some((earlier) => earlier.id === id))
      if (twice >= 0) throw new Error(`option resources[${twice}].id: is given twice`)
      await change((registry) => {
        const released = Object.entries(registry.resources).filter(([, { uri, fixed }]) => fixed === true && !list.some(({ id }) => id === uri))
        const changeable = released.map(([id, { fixed, ...entry }]): [string, ResourceEntry] => [id, entry])
        const start = released.length === 0 ? registry : { ...registry, resources: { ...registry.resources, ...Object.fromEntries(changeable) } }
        return list.reduce(declare, start)
      })
    },

    async count (): Promise<number> {
      return Object.keys((await readRegistry(store)).resources).length
    },

    /**
     * A page of the list, with the cursor of the next page.
     * @throws ErrParam for an invalid sort, or a cursor of another sort
     */
    page: readPage,

    /**
     * Batches of resources.
     * @throws as `page`
     */
    async * list (query: ResourceListQuery = {}): AsyncGenerator<Resource[], void, undefined> {
      yield * (await readPage(query)).batches
    }
  }
}

export type Resources = ReturnType<typeof createResources>
