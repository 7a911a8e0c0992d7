import { hash } from 'node:crypto'

/** The most characters of a URL that is a client id: those of any id. */
export const MOST_URL = 128

/** Such a client is also addressed by this prefix and the id of its document, because its URL is awkward in a path. */
export const DOCUMENT_PREFIX = 'document:'

/** Whether a client id is the URL of a document. No registered client has such an id. */
export const isDocumentUrl = (client_id: string): boolean => client_id.startsWith('https://')

/** The id of the document of a URL: its SHA-256, base64url. */
export const toDocumentId = (url: string): string => hash('sha256', url, 'base64url')

/** The host of a client id that is the URL of a document, as pages show it. */
export const toDocumentHost = (url: string): string => URL.parse(url)?.host ?? url
