import { explain } from '../lib/documents/error.ts'
import type { Documents } from '../lib/documents/index.ts'
import { required, UsageError } from './args.ts'
import type { Commands, Context } from './command.ts'
import { printList } from './output.ts'

const COLUMNS = { ID: 'id', URL: 'url', NAME: 'name', STATE: 'state', FETCHED: 'fetched_at', USED: 'used_at' } as const

const URL_FLAG = required('URL', 'The URL of the document, which is the id of the client.')

/** @throws UsageError when there are no such clients */
async function load ({ services: { documents } }: Context): Promise<Documents> {
  if (documents === undefined) throw new UsageError('clients from documents are off: IDENTITY_DOCUMENT_HOSTS turns them on')
  return await documents.load()
}

export const documentCommands: Commands = {
  'client document test': {
    summary: 'Fetch and judge the document of a client that nobody has registered, and store nothing.',
    flags: { url: URL_FLAG },
    creates: false,
    run: async (context) => await explain((await load(context)).test(context.args.required('url')))
  },

  'client document list': {
    summary: 'List the clients that nobody has registered.',
    flags: {},
    creates: false,
    async run (context) {
      await printList(context, (await load(context)).list(), COLUMNS)
    }
  },

  'client document block': {
    summary: 'Block a client that nobody has registered, also before its first use. Its tokens end.',
    flags: { url: URL_FLAG },
    async run (context) {
      const url = context.args.required('url')
      await explain((await load(context)).block(url))
      return [{ url, blocked: true }, 'client patch --client URL --enable allows it again.']
    }
  },

  'client document refresh': {
    summary: 'Fetch a stored document again now.',
    flags: { url: URL_FLAG },
    async run (context) {
      const url = context.args.required('url')
      await explain((await load(context)).refresh(url))
      return { url, refreshed: true }
    }
  }
}
