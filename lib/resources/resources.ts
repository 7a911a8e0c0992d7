import type { CreateResource, NewResource, PatchResource, Resource, ResourceListQuery } from '../../schemas/resource.ts'
import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError, permError } from '../errors.ts'
import { generateId } from '../ids.ts'
import { mapBatches, type Page } from '../lists/cursor.ts'
import { pageDocuments } from '../lists/documents.ts'
import { parseSort } from '../lists/sort.ts'
import { dropResource, putResource } from './declare.ts'
import { isSameEntry, patchEntry, toEntry } from './entries.ts'
import { type Registry, type ResourceEntry, findByUri, readRegistry } from './registry.ts'
import { createRegistryChanges } from './registry-changes.ts'
import { showResource } from './show-resource.ts'

const SORT_KEYS = { created: 'created_at', modified: 'modified_at', name: 'name' }

interface ResourceServices extends Base {
  /** The URI of the service's own API, if known. */
  api?: string | undefined
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

/**
 * Declares one resource of the option `resources`.
 * @param index its position there
 * @throws Error that names the option
 */
function declareFixedOne (registry: Registry, data: NewResource, index: number, { time, api }: { time: number, api: string | undefined }): Registry {
  try {
    const [resourceId, before] = findByUri(registry, data.id) ?? [generateId(time)]
    const entry = { ...toEntry(data, { time: toTimestamp(time), api, before }), fixed: true }
    return before !== undefined && isSameEntry(before, entry) ? registry : putResource(registry, resourceId, entry)
  } catch (error) {
    if (!(error instanceof IdentityError)) throw error
    throw new Error(`option resources[${index}].${error.message}`, { cause: error })
  }
}

/** The registry with the resources of the option. One that the option has no longer can be changed by the API. */
function declareFixed (registry: Registry, list: readonly NewResource[], parts: { time: number, api: string | undefined }): Registry {
  const released = Object.entries(registry.resources).filter(([, { uri, fixed }]) => fixed === true && !list.some(({ id }) => id === uri))
  const changeable = released.map(([id, { fixed: _fixed, ...entry }]): [string, ResourceEntry] => [id, entry])
  const start = released.length === 0 ? registry : { ...registry, resources: { ...registry.resources, ...Object.fromEntries(changeable) } }
  return list.reduce((declared, data, index) => declareFixedOne(declared, data, index, parts), start)
}

/**
 * Declared resources. Each is the audience of its tokens and defines its scopes. All of them are one document, which is changed by
 * conditional writes. Of two concurrent changes, the second is based on the result of the first.
 */
export function createResources ({ api, ...base }: ResourceServices) {
  const { store, now } = base
  const { ensure, change } = createRegistryChanges(base)

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
      const entry = toEntry(data, { time: toTimestamp(time), api })
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
        putResource(registry, resourceId, patchEntry(requireChangeable(registry, resourceId), data, toTimestamp(now()))))
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
      await change((registry) => declareFixed(registry, list, { time: now(), api }))
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
