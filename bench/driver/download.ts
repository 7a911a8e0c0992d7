import { get } from 'node:http'
import type { DownloadResult } from '../types.ts'

export interface DownloadOptions {
  port: number
  path: string
  headers: Record<string, string>
}

/** Reads an answer to its end and discards it. Rejects when it is incomplete or its status is not 200. */
export async function download ({ port, path, headers }: DownloadOptions, signal?: AbortSignal): Promise<DownloadResult> {
  const { promise, resolve, reject } = Promise.withResolvers<DownloadResult>()
  const start = performance.now()
  const request = get({ host: '127.0.0.1', port, path, headers, agent: false, ...(signal && { signal }) }, (response) => {
    if (response.statusCode !== 200) {
      response.resume()
      return reject(new Error(`${path} answered ${response.statusCode}`))
    }
    let bytes = 0
    let firstByte = 0
    response.on('data', (chunk: Buffer) => {
      if (bytes === 0) firstByte = performance.now() - start
      bytes += chunk.length
    })
    response.on('end', () => resolve({ bytes, firstByte, elapsed: performance.now() - start }))
    response.on('error', reject)
  })
  request.on('error', reject)
  return await promise
}
