import { explain } from '../lib/client-documents/error.ts'
import type { Documents } from '../lib/client-documents/index.ts'
import { subject } from './args.ts'
import type { Commands, Context } from './command.ts'
import { printList } from './output.ts'

const COLUMNS = { ID: 'id', URL: 'url', NAME: 'name', STATE: 'state', FETCHED: 'fetched_at', USED: 'used_at' } as const

const URL_FLAG = subject('URL', 'The URL of the document, which is the id of the client.')

/** @throws Error when there are no such clients */
async function load ({ services: { documents } }: Context): Promise<Documents> {
  if (documents === undefined) throw new Error('clients from documents are off: IDENTITY_DOCUMENT_HOSTS turns them on')
  return await documents.load()
}

export const documentCommands: Commands = {
  'client document test': {
    summary: 'Fetch and check the document of an unregistered app. Stores nothing.',
    example: 'client document test https://app.example/client.json',
    flags: { url: URL_FLAG },
    creates: false,
    run: async (context) => await explain((await load(context)).test(context.args.required('url')))
  },

  'client document list': {
    summary: 'List unregistered apps (client metadata documents).',
    example: 'client document list',
    flags: {},
    creates: false,
    async run (context) {
      await printList(context, (await load(context)).list(), COLUMNS)
    }
  },

  'client document block': {
    summary: 'Block an unregistered app. Also before its first use. Its tokens end.',
    example: 'client document block https://app.example/client.json',
    flags: { url: URL_FLAG },
    async run (context) {
      const url = context.args.required('url')
      await explain((await load(context)).block(url))
      return [{ url, blocked: true }, 'client patch URL --enable allows it again.']
    }
  },

  'client document refresh': {
    summary: 'Fetch the document of an unregistered app again now.',
    example: 'client document refresh https://app.example/client.json',
    flags: { url: URL_FLAG },
    async run (context) {
      const url = context.args.required('url')
      await explain((await load(context)).refresh(url))
      return { url, refreshed: true }
    }
  }
}
